"""The text of a profile: `$NAME` from the environment, and `{placeholders}` that the kit fills in later.

A mistake is reported with its line, before anything is started.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.target.id_form import ALPHABETS, IdForm
from continuity_spec import Document
from continuity_spec.errors import SchemaViolationError, SpecError, nearest, suggestion

Path = tuple[str | int, ...]
"""Where a value is: the keys and positions that lead to it."""
_VARIABLE: Final = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{([a-z_]+)\}")
_IN_COMMANDS: Final = ("port", "folder", "probe", "profile")
_IN_FILES: Final = ("port", "folder", "probe")
_IN_CONTROLS: Final = ("response", "session", "what", "on", "next")
_IN_TOOLS: Final = ("name", "content")


class ProfileText:
    """Reads the texts of one profile. `used`: the values of all variables that it filled in."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.used: list[str] = []

    def filled(self, value: Any, path: Path) -> Any:
        """Fill in the variables of a text, or of all texts inside a mapping or a list. `$$` is a dollar sign."""
        if isinstance(value, Mapping):
            return {name: self.filled(each, (*path, name)) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(each, (*path, number)) for number, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        return _VARIABLE.sub(lambda match: match[1] or self._variable(match[2] or match[3], path), value)

    def _variable(self, name: str, path: Path) -> str:
        if name not in os.environ:
            raise UsageError(
                f"${name} is not set in the environment.",
                where=str(self._document.place(path)),
                do=f"Run: export {name}=… (a dollar sign that is meant as one is written $$)",
            )
        self.used.append(os.environ[name])
        return os.environ[name]

    def check(self, data: Mapping[str, Any]) -> None:
        """Raise the first mistake in a placeholder, in the arguments of a tool, or in the form of ids."""
        for section in ("process", "previous"):
            self._check_process(data.get(section, {}), (section,))
        self._check_texts(data.get("legacy", ""), ("legacy",), _IN_FILES)
        for name, control in data.get("controls", {}).items():
            http = control.get("http", "") if isinstance(control, Mapping) else ""
            self._check_texts(http, ("controls", name, "http"), _IN_CONTROLS)
        for name, tool in data.get("tools", {}).items():
            self._check_arguments(tool["arguments"], ("tools", name, "arguments"))
        if data.get("body_names", {}).get("conversation") == "none":
            path = ("body_names", "conversation")
            raise self._error(path, "`conversation` cannot be left out here", "Write slugs: none.")

    def ids(self, text: str) -> IdForm | None:
        """The form of the ids that the profile demands."""
        try:
            return IdForm.read(text) if text else None
        except ValueError as problem:
            forms = ", ".join(f"{{{name}:N}}" for name in ALPHABETS)
            raise self._error(
                ("ids",),
                str(problem),
                f"Write uuid, or a text with {forms} or {{uuid}} in it, such as conv_{{hex:24}}.",
            ) from None

    def _check_process(self, process: Mapping[str, Any], at: Path) -> None:
        for name in ("start", "alone"):
            self._check_texts(process.get(name, ()), (*at, name), _IN_COMMANDS)
        self._check_texts(process.get("env", {}), (*at, "env"), _IN_FILES)
        for name in ("keyless", "single_user"):
            self._check_without_keys(process.get(name, ()), (*at, name))
        # Files may be in any format, with braces of their own: there only a probable slip is a mistake.
        self._check_texts(process.get("files", {}), (*at, "files"), _IN_FILES, slips_only=True)

    def _check_without_keys(self, command: Any, at: Path) -> None:
        within = ("start",) if isinstance(command, Mapping) else ()
        own = command if isinstance(command, Mapping) else {"start": command}
        self._check_texts(own["start"], (*at, *within), _IN_COMMANDS)
        self._check_texts(own.get("env", {}), (*at, "env"), _IN_FILES)

    def _check_texts(self, value: Any, at: Path, known: Sequence[str], *, slips_only: bool = False) -> None:
        inner = value.items() if isinstance(value, Mapping) else enumerate(value) if not isinstance(value, str) else ()
        for key, each in inner:
            self._check_texts(each, (*at, key), known, slips_only=slips_only)
        for name in _PLACEHOLDER.findall(value) if isinstance(value, str) else ():
            if name not in known and not (slips_only and nearest(name, known) is None):
                hint = suggestion(name, known)
                raise self._error(
                    at,
                    f"{{{name}}} is no placeholder",
                    f"{hint} Braces that are meant as text need blanks: {{ {name} }}.",
                )

    def _check_arguments(self, arguments: str, at: Path) -> None:
        """The arguments of a tool are a JSON object once `{name}` and `{content}` are filled in."""
        self._check_texts(arguments, at, _IN_TOOLS)
        try:
            filled = json.loads(_PLACEHOLDER.sub("text", arguments))
        except json.JSONDecodeError as error:
            what = f"the arguments of the tool are not JSON ({error.msg}, character {error.pos + 1})"
            raise self._error(at, what, _ARGUMENTS_REMEDY) from None
        if not isinstance(filled, dict):
            raise self._error(at, "the arguments of the tool are not a JSON object", _ARGUMENTS_REMEDY)

    def _error(self, path: Path, what: str, remedy: str) -> SpecError:
        return SchemaViolationError(str(self._document.place(path)), what, remedy)


_ARGUMENTS_REMEDY: Final = 'Write such as \'{"path": "{name}", "content": "{content}"}\'.'
