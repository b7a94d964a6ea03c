"""`make audit`: a package that could not be audited is never taken for a safe one."""

import json

import pytest
from audit import verdict

SAFE = {"name": "safe", "version": "1", "vulns": []}
HARMFUL = {"name": "old", "version": "2", "vulns": [{"id": "PYSEC-1"}]}
UNKNOWN = {"name": "far", "skip_reason": "Dependency not found on PyPI and could not be audited: far (1)"}
OWN = {"name": "session-continuity", "skip_reason": "distribution marked as editable"}


@pytest.mark.parametrize(
    ("packages", "exit_code", "says"),
    [
        ([SAFE, OWN], 0, "no known vulnerability"),
        ([SAFE, UNKNOWN, HARMFUL], 1, "old 2 (PYSEC-1)"),
        ([SAFE, UNKNOWN], 3, "1 of 2 packages could not be audited"),
        ([], 3, "could not be audited"),
    ],
)
def test_what_the_output_of_pip_audit_means(packages, exit_code, says):
    code, line = verdict(json.dumps({"dependencies": packages}))

    assert code == exit_code
    assert says in line


def test_no_output_means_that_nothing_was_audited():
    assert verdict("")[0] == 3
