"""Writes the requests that schemathesis generates for the OpenAPI document from the default seed: `fuzz/generated/requests.json` of the kit.

`python tools/generated_requests.py`, after a change of the document or with a new version of schemathesis. A test compares the file with the document.
"""

import hashlib
import json
from importlib.metadata import version
from typing import Any

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED, Budget
from continuity_conformance.fuzz.generated.document import operations_of, whole_document
from continuity_conformance.fuzz.generated.live import LiveGenerator
from continuity_conformance.fuzz.generated.shipped import REQUESTS


def document_digest() -> str:
    return hashlib.sha256(json.dumps(whole_document(), sort_keys=True).encode()).hexdigest()[:16]


def generators() -> dict[str, str]:
    """The versions of the libraries that decide what is generated."""
    return {name: version(name) for name in ("schemathesis", "hypothesis")}


def generated() -> list[dict[str, Any]]:
    """The requests of every operation. The same seed and the same versions generate the same ones."""
    document, cases = whole_document(), []
    generator = LiveGenerator(document, Budget(DEFAULT_EXAMPLES, DEFAULT_SEED))
    for operation in operations_of(document):
        generator.explore(operation, cases.append)
    return [case.as_json() for case in cases]


def main() -> None:
    about = {"document": document_digest(), "seed": DEFAULT_SEED, "examples": DEFAULT_EXAMPLES, **generators()}
    lines = ",\n".join(json.dumps(case) for case in generated())
    REQUESTS.write_text(f'{{"about": {json.dumps(about)},\n"requests": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
