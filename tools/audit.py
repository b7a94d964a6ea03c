"""Compare the installed packages with known vulnerabilities. Needs pip-audit, and the network for the advisories.

Exit codes: 0 nothing known, 1 a package has a known vulnerability, 3 the advisories could not be reached, so nothing was audited.
"""

import subprocess
import sys
import sysconfig

_FOUND = "Found "
_NOTHING_KNOWN = "No known vulnerabilities found"


def verdict(exit_code: int, errors: str) -> int:
    """What a run of pip-audit means. It ends with 1 both for a vulnerability and for a service that it cannot reach."""
    if exit_code == 0 and _NOTHING_KNOWN in errors:
        return 0
    return 1 if _FOUND in errors else 3


def main(program: str, packages: str) -> int:
    command = [program, "--path", packages, "--progress-spinner", "off", "--skip-editable"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    ended = verdict(done.returncode, done.stderr)
    last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    unreached = f"audit: the advisory service could not be reached ({last[0][:200]}). Nothing was audited."
    sys.stderr.write(f"{unreached if ended == 3 else last[0]}\n")  # noqa: PLR2004 - see above
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else sysconfig.get_path("purelib")))  # noqa: PLR2004
