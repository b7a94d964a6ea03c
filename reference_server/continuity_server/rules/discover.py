"""DISCOVER: what the server says about itself. Pure: settings in, capabilities out."""

from typing import Any

from continuity_server.settings import HEADER, RELEASE, Settings


class DiscoverRules:
    """The rules about capabilities."""

    def capabilities(self, settings: Settings) -> dict[str, Any]:
        """DISCOVER-01, -02: the header, the options and the offers of this server, as they are."""
        offers = [
            "chat",
            "responses",
            "stored-responses",
            "conversations",
            "streaming",
            "compression",
            "idempotency",
            "sessions",
            "client-tools",
        ]
        offers += ["replicas"] if settings.is_shared else []
        offers += ["cors"] if settings.cors else []
        offers += ["tenants"] if len({key.principal for key in settings.keys}) > 1 else []
        return {
            "release": RELEASE,
            "header": HEADER,
            "headers": list(settings.headers),
            "options": settings.options.as_json(),
            "offers": offers,
            "single_user": settings.single_user,
            "controls": settings.controls is not None,
        }
