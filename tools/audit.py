"""Compare the installed packages with known vulnerabilities. Needs pip-audit, and the network for the advisories.

Exit codes: 0 nothing known about any package, 1 a package has a known vulnerability, 3 some or all packages could not be audited.
"""

import json
import subprocess
import sys
import sysconfig
from typing import Any

_SECONDS = 120
_NOT_AUDITED = 3


def verdict(output: str) -> tuple[int, str]:
    """The exit code and one line, from the JSON of pip-audit. It calls a package that it could not look up "skipped", which is no good news."""
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _NOT_AUDITED, "the advisory service could not be reached. Nothing was audited."
    harmful = [each for each in packages if each.get("vulns")]
    if harmful:
        named = (
            f"{each['name']} {each['version']} ({', '.join(one['id'] for one in each['vulns'])})" for each in harmful
        )
        return 1, f"known vulnerabilities: {'; '.join(named)}"
    skipped = [each for each in packages if "skip_reason" in each and "editable" not in each["skip_reason"]]
    if skipped or not packages:
        return (
            _NOT_AUDITED,
            f"{len(skipped)} of {len(packages)} packages could not be audited: the advisories were not reached.",
        )
    return 0, f"{len(packages)} packages, no known vulnerability"


def audited(program: str, packages: str) -> str:
    """What pip-audit prints; nothing if it does not end in time."""
    command = [
        program,
        "--path",
        packages,
        "--progress-spinner",
        "off",
        "--skip-editable",
        "--timeout",
        "5",
        "--format",
        "json",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS).stdout
    except subprocess.TimeoutExpired:
        return ""


if __name__ == "__main__":
    ended, line = verdict(audited(sys.argv[1], sysconfig.get_path("purelib")))
    sys.stdout.write(f"audit: {line}\n")
    sys.exit(ended)
