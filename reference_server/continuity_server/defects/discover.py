"""Defects of DISCOVER: a server that says nothing of itself, or what is not so."""

from typing import Any

from aiohttp import web

from continuity_server.defects.registry import defect
from continuity_server.http.app import App
from continuity_server.rules import Rules
from continuity_server.settings import OPTION_VALUES, Settings


@defect("capabilities-missing", "There are no capabilities to read.")
class CapabilitiesMissing(App):
    def routes(self) -> list[web.RouteDef]:
        return [route for route in super().routes() if route.path != "/v1/capabilities"]


@defect("capabilities-without-header", "The capabilities do not name the continuity header.")
class CapabilitiesWithoutHeader(Rules):
    def capabilities(self, settings: Settings) -> dict[str, Any]:
        return {name: value for name, value in super().capabilities(settings).items() if name != "header"}


@defect("capabilities-without-options", "The capabilities name the header, and no option.", "hermes-agent 0.19.0")
class CapabilitiesWithoutOptions(Rules):
    def capabilities(self, settings: Settings) -> dict[str, Any]:
        return {name: value for name, value in super().capabilities(settings).items() if name != "options"}


@defect("claims-another-header", "The capabilities name a header that the server does not know.")
class ClaimsAnotherHeader(Rules):
    def capabilities(self, settings: Settings) -> dict[str, Any]:
        return {**super().capabilities(settings), "header": "X-Other-Session-Id", "headers": ["X-Other-Session-Id"]}


@defect("claims-single-user", "The capabilities say that the server is for a single user, and it has several.")
class ClaimsSingleUser(Rules):
    def capabilities(self, settings: Settings) -> dict[str, Any]:
        return {**super().capabilities(settings), "single_user": True}


@defect("claims-responses", "The capabilities offer /v1/responses, and there is nothing.")
class ClaimsResponses(App):
    def routes(self) -> list[web.RouteDef]:
        return [route for route in super().routes() if not route.path.startswith("/v1/responses")]


@defect("claims-sessions", "The capabilities offer /v1/sessions, and there is nothing.")
class ClaimsSessions(App):
    def routes(self) -> list[web.RouteDef]:
        return [route for route in super().routes() if not route.path.startswith("/v1/sessions")]


def _claiming(option: str, value: str) -> type[Rules]:
    class Claiming(Rules):
        def capabilities(self, settings: Settings) -> dict[str, Any]:
            own = super().capabilities(settings)
            return {**own, "options": {**own["options"], option: value}}

    return Claiming


def _hiding(offer: str) -> type[Rules]:
    class Hiding(Rules):
        def capabilities(self, settings: Settings) -> dict[str, Any]:
            own = super().capabilities(settings)
            return {**own, "offers": [one for one in own["offers"] if one != offer]}

    return Hiding


# Each kind of claim rests on verdicts of its own, so each is made untrue by itself. Of the options not in this list a defect of their area does it.
for _name, _option, _value in (
    ("claims-content-v2", "derivation", "content-v2"),
    ("claims-no-derivation", "derivation", "none"),
    ("claims-alias", "echo", "alias"),
    ("claims-refuse", "degraded", "refuse"),
    ("claims-no-environment", "environment", "none"),
    ("claims-to-tell-nothing", "tells", "nothing"),
):
    assert _value in OPTION_VALUES[_option]
    defect(_name, f"The capabilities say {_option}: {_value}, and the server does {OPTION_VALUES[_option][0]}.")(
        _claiming(_option, _value)
    )

for _offer in ("responses", "streaming", "compression", "cors", "idempotency", "sessions", "client-tools"):
    defect(f"hides-{_offer}", f"The capabilities do not offer {_offer}, and the server has it.")(_hiding(_offer))
