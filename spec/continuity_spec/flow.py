"""Plain data as one line of flow YAML, the way a person would write them. It knows nothing about what they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z0-9$/._<>=+-][A-Za-z0-9$/._<>=+:;@ '-]*")
_OTHER_TYPE = re.compile(r"true|false|null|[-+]?[0-9.]+([eE][-+]?[0-9]+)?")


def flow(value: object) -> str:
    """Write one line that means the same value when it is read as YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    fits = _PLAIN.fullmatch(text) and not _OTHER_TYPE.fullmatch(text)
    return bool(fits) and not text.endswith((":", " ")) and ": " not in text and text[0] != "-"
