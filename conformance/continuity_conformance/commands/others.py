"""`continuity serve`, `model` and `defects`: what belongs to the bundled server and the probe model.

The server is another program to the kit: it is started, never imported.
"""

import argparse
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from typing import Final, NoReturn

from continuity_conformance.errors import KitError

_SERVER: Final = (sys.executable, "-m", "continuity_server")


def serve(arguments: Sequence[str]) -> NoReturn:
    """Become the server, so that signals and exit codes are its own."""
    sys.stdout.flush()
    os.execv(sys.executable, [*_SERVER, *arguments])  # noqa: S606 # no shell, and the interpreter that runs already


def serve_without_arguments(_: argparse.Namespace) -> NoReturn:
    serve([])


def no_arguments(_: argparse.ArgumentParser) -> None:
    """Take none: the server reads its own."""


def model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")


def model(options: argparse.Namespace) -> int:
    from continuity_conformance import probe  # noqa: PLC0415

    probe.serve(options.port)
    return 0


def defects_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def defects(options: argparse.Namespace) -> int:
    entries = _defects()
    if options.json:
        sys.stdout.write(json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
        return 0
    sys.stdout.writelines(f"{_described(entry)}\n" for entry in entries)
    return 0


def _described(entry: dict[str, object]) -> str:
    issue = f" ({entry['issue']})" if entry.get("issue") else ""
    text = textwrap.fill(f"{entry['text']}{issue}", 80, initial_indent="    ", subsequent_indent="    ")
    return f"{entry['name']}\n{text}"


def _defects() -> list[dict[str, object]]:
    done = subprocess.run([*_SERVER, "--defects"], capture_output=True, text=True, check=False)  # noqa: S603 # ours
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
        raise KitError(f"the server cannot list its defects; it said: {said[0]}", where="continuity_server")
    entries: list[dict[str, object]] = json.loads(done.stdout)
    return entries
