"""The execution environment: one tool, `workspace`, that writes and reads named notes as files.

Which turns share an environment is a rule (`rules/env.py`). Here an environment is a name and a folder.
"""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

TOOL_NAME: Final = "workspace"
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": "Write a named note to the workspace, or read one that was written before.",
        "parameters": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["write", "read"]},
                "name": {"type": "string", "description": "The name of the note."},
                "text": {"type": "string", "description": "What to write; only with action write."},
            },
            "required": ["action", "name"],
        },
    },
}
_LONGEST_NAME: Final = 200


class Workspace:
    """The files of all environments, under one folder."""

    def __init__(self, folder: Path, *, offered: bool) -> None:
        self._folder = folder
        self.offered = offered

    def run(self, environment: str, arguments: str) -> str:
        """Run a tool call. An error is part of the result, for the model to read."""
        try:
            action = json.loads(arguments or "{}")
        except ValueError:
            action = None
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            return "error: the arguments are a JSON object with action and name"
        if not 0 < len(action["name"]) <= _LONGEST_NAME:
            return f"error: the name of a note has 1 to {_LONGEST_NAME} characters"
        try:
            return self._do(self._folder / environment / _file_name(action["name"]), action)
        except OSError:
            return "error: the workspace cannot be used now"

    def delete(self, environment: str) -> None:
        """ENV-04: delete the files of an environment. Raises OSError where that cannot be done."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder / environment)

    def _do(self, path: Path, action: dict[str, Any]) -> str:
        if action.get("action") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(action.get("text", "")), encoding="utf-8")
            return "written"
        if action.get("action") != "read":
            return "error: action is write or read"
        return path.read_text(encoding="utf-8") if path.exists() else "error: there is no note of that name"


def _file_name(name: str) -> str:
    """ISOLATE-05: a name is data; no character of it leads out of the folder."""
    quoted = quote(name, safe="", errors="replace")
    return f"note-{quoted if len(quoted) <= _LONGEST_NAME else hashlib.sha256(quoted.encode()).hexdigest()}.txt"
