"""CONTRACT: what every request must be like, whatever it asks for. Pure: text and fields in, text and fields out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from continuity_server.rules.error import invalid

DEEPEST: Final = 100
"""How deep a body may be nested. No client means a deeper one, and JSON encoders fail on it."""
LONGEST_PAGE: Final = 100
_JSON: Final = "application/json"


def _number(least: float, most: float) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _integer(least: float, most: float) -> Callable[[object], bool]:
    """1.0 is an integer too, as in JSON Schema."""
    in_range = _number(least, most)
    return lambda value: (
        in_range(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_stop(value: object) -> bool:
    return _is_text(value) or (isinstance(value, list) and len(value) <= 4 and all(map(_is_text, value)))  # noqa: PLR2004 - OpenAI's bound


def _is_metadata(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(text) and len(text) <= 512 for text in value.values())  # noqa: PLR2004 - OpenAI's bound


_INFINITE: Final = float("inf")
MODEL_FIELDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "max_tokens": _integer(1, _INFINITE),
    "max_completion_tokens": _integer(1, _INFINITE),
    "max_output_tokens": _integer(1, _INFINITE),
    "n": _integer(1, 128),
    "seed": _integer(-_INFINITE, _INFINITE),
    "stop": _is_stop,
    "user": _is_text,
    "metadata": _is_metadata,
    "tool_choice": lambda value: isinstance(value, str | dict),
    "parallel_tool_calls": lambda value: isinstance(value, bool),
}
"""OpenAI's fields that only the model reads, each with the test of its value."""


class ContractRules:
    """The rules that hold on every request, whatever it asks for."""

    def is_json(self, content_type: str) -> bool:
        """CONTRACT-13: a body with another content type than JSON is refused. No content type counts as JSON."""
        kind = content_type.partition(";")[0].strip().lower()
        return kind in {"", _JSON} or (kind.startswith("application/") and kind.endswith("+json"))

    def decoded(self, raw: bytes) -> str:
        """CONTRACT-06: JSON is UTF-8. Bytes that are not UTF-8 are refused, never replaced."""
        return raw.decode("utf-8-sig")

    def is_too_deep(self, body: object) -> bool:
        """CONTRACT-07: a body that is nested too deep is refused before anything encodes it again."""
        level, depth = [body], 0
        while level and depth <= DEEPEST:
            level = [item for value in level for item in _items(value)]
            depth += 1
        return bool(level)

    def allow_fields(self, methods: Iterable[str]) -> list[tuple[str, str]]:
        """CONTRACT-05: the refusal of a method names the methods that the path takes."""
        return [("Allow", ", ".join(sorted(methods)))]

    def page_limit(self, text: str) -> int:
        """CONTRACT-02: a limit outside the bounds of the OpenAPI document is refused."""
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LONGEST_PAGE:
            raise invalid(f"limit is no number from 1 to {LONGEST_PAGE}.", "limit")
        return int(text)

    def model_takes(self, name: str, value: object) -> bool:
        """CONTRACT-01, -12: a field that only the model reads has OpenAI's type and bounds, or is null, which counts as absent."""
        return value is None or MODEL_FIELDS[name](value)


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
