"""Ids that are not of the form which a target demands (`ids` of the profile): such a target is right to refuse them."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.context import Target
from continuity_conformance.scenario.exchange import Exchange

_REFUSALS: Final = frozenset({400, 404, 422})


def refuses_form(target: Target, exchange: Exchange, played: Sequence[Exchange]) -> bool:
    """Whether the target refused an id only because of its form. An id that it revealed itself has no wrong form."""
    form = target.profile.ids
    if form is None or exchange.answer.status not in _REFUSALS:
        return False
    revealed = {value for each in played for value in each.answer.fields(target.header)}
    return any(not form.fits(value) and value not in revealed for value in _chosen_ids(target, exchange))


def _chosen_ids(target: Target, exchange: Exchange) -> Iterator[str]:
    """The session ids and slugs that the client chose for this request."""
    profile, request = target.profile, exchange.request
    headers = {name.lower() for name in (target.header, *target.other_headers)}
    # An empty value is no id: it counts as no header.
    yield from (value for name, value in request.headers if name.lower() in headers and value.strip())
    fields = [profile.body] if profile.body else []
    fields += [profile.body_names.get("conversation", "conversation")] if profile.slugs == "named" else []
    for field in fields:
        value = dig(request.body, field)
        named = dig(value, "id") if isinstance(value, dict) else value
        yield from [named] if isinstance(named, str) else []
    if request.path.partition(profile.sessions)[2].startswith("/"):
        yield unquote(request.path.partition(f"{profile.sessions}/")[2].partition("/")[0])
