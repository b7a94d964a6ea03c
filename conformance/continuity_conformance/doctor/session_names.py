"""Find by behaviour how a server names a session: by a header or a field of the body that differs between conversations and comes back when it is sent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from continuity_conformance.doctor.state import new_dialogue
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.profile import Profile

KNOWN_HEADERS: Final = (
    *("X-Session-Id", "X-Session-Affinity", "session_id", "X-OpenWebUI-Chat-Id", "X-Letta-Chat-Key"),
    *("X-OpenHands-ServerConversation-ID", "X-Agent-Session-Id"),
)
"""Headers that servers in use take the session from. They are tried together, where no answer names a session."""
_ANY: Final = {"status": "any"}
_TRIED: Final = 3
_LIKELY: Final = re.compile(r"session|conversation|chat|thread", re.IGNORECASE)
_NOISE: Final = re.compile(
    r"request|trace|span|correlation|length|cookie|-ray$|time|nonce|signature|limit|duration|version|process|call|"
    r"^(access-control-.*|date|etag|age|via|nel|report-to|server|vary|expires|last-modified|location)$",
    re.IGNORECASE,
)
"""Header fields that differ between answers, and are about something else."""
_OTHER_FIELDS: Final = frozenset(
    {"id", "object", "created", "created_at", "model", "system_fingerprint", "service_tier"}
)
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_FORMS: Final = (
    (re.compile(_UUID), "uuid"),
    (re.compile(rf"([A-Za-z_.-]+){_UUID}"), "{prefix}{{uuid}}"),
    (re.compile(r"([A-Za-z_.-]*)([0-9a-f]{12,})"), "{prefix}{{hex:{length}}}"),
    (re.compile(r"([A-Za-z_.-]*)([0-9]{13,})"), "{prefix}{{digits:{length}}}"),
)


@dataclass(frozen=True, slots=True)
class SessionName:
    """A header or a field of the body that names a session, and a value of it that the server made."""

    kind: Literal["header", "body"]
    name: str
    value: str

    @property
    def form(self) -> str:
        """The form of the ids that the server makes, as `ids` of a profile; empty if it is not a simple one."""
        for pattern, form in _FORMS:
            if match := pattern.fullmatch(self.value):
                prefix, length = (*match.groups(""), "", "")[:2]
                return form.format(prefix=prefix, length=len(length))
        return ""

    def applied_to(self, profile: Profile) -> Profile:
        """The profile of a server that names its sessions in this way."""
        return (
            replace(profile, header=self.name) if self.kind == "header" else replace(profile, header="", body=self.name)
        )

    @property
    def params(self) -> Mapping[str, object]:
        """What a turn sends to continue the session."""
        return {"headers" if self.kind == "header" else "with": {self.name: self.value}}


async def plain_turn(context: Context, say: str) -> Exchange:
    """A turn that names no session, in a conversation of its own."""
    return await new_dialogue(context).do(_verb(context), _ANY, say=say)


async def revealed(context: Context, first: Exchange) -> SessionName | None:
    """What names the session in the answers: it differs between two conversations, and comes back when it is sent."""
    second = await plain_turn(context, "another conversation")
    for name in [*_candidates(first, second)][:_TRIED]:
        answered = await new_dialogue(context).do(_verb(context), _ANY, say="the same conversation", **name.params)
        if answered.answer.accepted and name.value in _values(answered, name):
            return name
    return None


async def remembering_header(context: Context) -> str:
    """One of the known headers by which the model sees the conversation so far; empty if there is none. All are sent at once first."""
    if not await _remembers(context, KNOWN_HEADERS):
        return ""
    for header in KNOWN_HEADERS:
        if await _remembers(context, (header,)):
            return header
    return ""


async def _remembers(context: Context, headers: Sequence[str]) -> bool:
    """Whether the second of two turns with these headers sees the first."""
    dialogue = new_dialogue(context)
    fields = dict.fromkeys(headers, dialogue.variables.text("$id", "session"))
    for say in ("red", "blue"):
        exchange = await dialogue.do(_verb(context), _ANY, say=say, headers=fields)
    if not exchange.answer.accepted:
        return False
    await dialogue.record.view(exchange)
    return "red" in (exchange.seen or ())


def _verb(context: Context) -> str:
    return "respond" if context.target.profile.chat == "none" else "chat"


def _candidates(first: Exchange, second: Exchange) -> Iterator[SessionName]:
    """Fields of the answers that may name a session, the likely ones first."""
    found = [
        SessionName("header", name, value)
        for name, value in first.answer.headers
        if not _NOISE.search(name) and (_LIKELY.search(name) or value not in second.answer.fields(name))
    ]
    bodies = first.answer.body, second.answer.body
    if isinstance(bodies[0], Mapping) and isinstance(bodies[1], Mapping):
        found += [
            SessionName("body", name, value)
            for name, value in bodies[0].items()
            if isinstance(value, str) and name not in _OTHER_FIELDS and value != bodies[1].get(name, value)
        ]
    yield from sorted(found, key=lambda each: not _LIKELY.search(each.name))


def _values(exchange: Exchange, name: SessionName) -> list[object]:
    if name.kind == "header":
        return [*exchange.answer.fields(name.name)]
    return [exchange.answer.body.get(name.name)] if isinstance(exchange.answer.body, Mapping) else []
