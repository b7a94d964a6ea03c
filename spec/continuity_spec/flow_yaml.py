"""Write plain data as one line of YAML in flow style, such as `{say: red, session: [$a, $b]}`.

Strings are quoted only where YAML needs it. This module does not know what the data mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z0-9$/._<>=+-][A-Za-z0-9$/._<>=+:;@ '-]*")
_OTHER_TYPE = re.compile(r"true|false|null|[-+]?[0-9.]+([eE][-+]?[0-9]+)?")


def flow_yaml(value: object) -> str:
    """Write one line that gives the same value when it is parsed as YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow_yaml(key)}: {flow_yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow_yaml(item) for item in value) + "]"
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    fits = _PLAIN.fullmatch(text) and not _OTHER_TYPE.fullmatch(text)
    return bool(fits) and not text.endswith((":", " ")) and ": " not in text and text[0] != "-"
