"""`make audit`: a service that cannot be reached is never taken for good news."""

import pytest
from audit import verdict


@pytest.mark.parametrize(
    ("exit_code", "errors", "meaning"),
    [
        (0, "No known vulnerabilities found\n", 0),
        (1, "Found 2 known vulnerabilities in 1 package\n", 1),
        (1, "ERROR:pip_audit._cli:Failed to establish a new connection\n", 3),
        (1, "", 3),
        (0, "", 3),
    ],
)
def test_what_a_run_of_pip_audit_means(exit_code, errors, meaning):
    assert verdict(exit_code, errors) == meaning
