"""Python checks for what the scenario vocabulary cannot express: one module for each area. `support` has what they need.

Importing the package registers all of them. A check is a short async function without `if` and `try`. A requirement
names it, as in `check: every_operation_wants_a_key`.
"""

from continuity_conformance.checks import (
    compress,
    concur,
    contract,
    contract_sequences,
    discover,
    durable,
    echo,
    error,
    history,
    isolate,
    long_history,
    migrate,
    slug,
    stream,
    unchanged_history,
    web_pages,
)

__all__ = [
    "compress",
    "concur",
    "contract",
    "contract_sequences",
    "discover",
    "durable",
    "echo",
    "error",
    "history",
    "isolate",
    "long_history",
    "migrate",
    "slug",
    "stream",
    "unchanged_history",
    "web_pages",
]
