"""DISCOVER: what the server says of itself. Pure: facts in, claims out."""

from typing import Any


class DiscoverRules:
    """The rules about capabilities."""

    def claims(self, facts: dict[str, Any]) -> dict[str, Any]:
        """DISCOVER-01, -02: the header, the options and the offers, as they are."""
        return facts

    def serves(self, path: str) -> bool:  # noqa: ARG002 - the rule is that it does
        """DISCOVER-02: what is offered is there."""
        return True
