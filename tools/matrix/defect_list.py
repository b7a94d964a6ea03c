"""The defects as the bundled server lists them. `python tools/matrix/defect_list.py` writes the list that comes with the kit."""

import subprocess
import sys

from continuity_conformance.suite.defects import FILE


def listed_by_server() -> str:
    """The list as JSON. The server is another program: it is asked, never imported."""
    command = [sys.executable, "-m", "continuity_server", "--defects"]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def write_list() -> None:
    FILE.write_text(listed_by_server(), encoding="utf-8")


if __name__ == "__main__":
    write_list()
