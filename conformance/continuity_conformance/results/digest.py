"""The digest of results.json: it shows that nobody has changed the file since the run wrote it.

It protects against mistakes, not against somebody who means to deceive: whoever changes the file can compute the digest again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

FIELD: Final = "digest"


def digest(results: Mapping[str, Any]) -> str:
    """The SHA-256 of the content, whatever its formatting and the order of its fields."""
    content = {name: value for name, value in results.items() if name != FIELD}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def with_digest(results: Mapping[str, Any]) -> dict[str, Any]:
    return {FIELD: digest(results), **{name: value for name, value in results.items() if name != FIELD}}
