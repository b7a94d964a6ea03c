"""Edits of SQL: the conditions, orders and bounds of a statement, each weakened alone.

A condition becomes `(… OR 1)`, so that the statement still takes all its values: one that fails to bind would only show that it was run.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

_STATEMENT: Final = re.compile(
    r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE|CREATE|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA|DEFAULT)\b"
)
_CONDITION: Final = re.compile(
    r"(?<=WHERE |. AND |.. ON )(?!NOT EXISTS|EXISTS|\()([\w.]+(?:\s*(?:<=|>=|=|<|>)\s*(?:\?\d*|[\w.]+)| IS NULL| IS NOT NULL))"
)
_IN: Final = re.compile(r"(?<=AND )((?:session|response_id) IN )(?=\()")
Change = Callable[[re.Match[str]], str]
_CHANGES: Final[tuple[tuple[re.Pattern[str], Change], ...]] = (
    (_CONDITION, lambda found: f"({found[0]} OR 1)"),
    (_IN, lambda found: f"1 OR {found[0]}"),
    (re.compile(r"(?<=[a-z])<="), lambda _: "<"),
    (re.compile(r"(?<=[a-z])>(?!=)"), lambda _: ">="),
    (re.compile(r"(?<=[a-z])<(?![=<])"), lambda _: "<="),
    (re.compile(r" ORDER BY [\w., ]+?(?= LIMIT|$)"), lambda _: ""),
    (re.compile(r" DESC\b"), lambda _: ""),
    (re.compile(r" LIMIT \?\d"), lambda _: ""),
    (re.compile(r"\bmax\("), lambda _: "min("),
    (re.compile(r"\bmin\("), lambda _: "max("),
    (re.compile(r" OR IGNORE"), lambda _: " OR REPLACE"),
    (re.compile(r" OR REPLACE"), lambda _: " OR IGNORE"),
    (re.compile(r"(?<!IF )NOT EXISTS"), lambda _: "EXISTS"),
    (re.compile(r"(?<!IF )(?<!NOT )EXISTS"), lambda _: "NOT EXISTS"),
    (re.compile(r"LEFT JOIN"), lambda _: "JOIN"),
    (re.compile(r"epoch\+1"), lambda _: "epoch"),
    (re.compile(r"(?<==)0\b"), lambda _: "1"),
    (re.compile(r" - 1\b"), lambda _: ""),
    (re.compile(r"PRIMARY KEY \(owner, "), lambda _: "PRIMARY KEY ("),
    (re.compile(r" AUTOINCREMENT"), lambda _: ""),
    (re.compile(r"(?<=DEFAULT )1\b"), lambda _: "0"),
    (re.compile(r"(?<=DEFAULT )0\b"), lambda _: "1"),
    (re.compile(r" IMMEDIATE"), lambda _: ""),
    (re.compile(r"IS NOT NULL AND r"), lambda _: "IS NULL AND r"),
)


def is_sql(text: str) -> bool:
    return _STATEMENT.match(text) is not None


def sql_edits(statement: str) -> Iterator[tuple[str, str, str]]:
    """What is changed, into what, and the whole statement after it."""
    for pattern, change in _CHANGES:
        for found in pattern.finditer(statement):
            after = change(found)
            whole = statement[: found.start()] + after + statement[found.end() :]
            yield _around(statement, found.start(), found.end()), after.strip() or "left out", whole


def _around(statement: str, start: int, end: int) -> str:
    """The change with a few words before it, so that two equal ones in a statement can be told apart."""
    before = " ".join(statement[:start].split()[-3:])
    return f"{before} [{statement[start:end].strip()}]".strip()
