"""What the page sends: which target, with which key and profile, and what to run on it."""

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from continuity_conformance.core.errors import UsageError

KEY_NAME: Final = "TARGET_KEY"
"""The environment variable with the key, for the profile and the child process."""
_NAMES_THE_KEY: Final = (f"${KEY_NAME}", f"${{{KEY_NAME}}}")


class Form(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the page. `profile`: the text of a profile; `file`: the path of one instead."""

    target: str = ""
    key: str = ""
    profile: str = ""
    file: str = ""
    classes: tuple[str, ...] = ()
    only: str = ""
    """An expression as for `continuity check -k`."""

    @property
    def address(self) -> str:
        return self.target.strip()

    @property
    def path(self) -> Path | None:
        return Path(self.file.strip()).expanduser() if self.file.strip() else None

    def profile_text(self) -> str:
        """The profile to write, with the name of the key in it. Empty if there is nothing to write."""
        text = self.profile.strip()
        if not self.key or _names_the_key(text):
            return f"{text}\n" if text else ""
        if any(line.startswith("principals:") for line in text.splitlines()):
            raise _unused_key("the profile")
        return f"{text}\nprincipals: {{alice: ${KEY_NAME}}}\n".lstrip()

    def check(self) -> None:
        """Raise UsageError for what the command cannot know: a key that would not be used, or two profiles."""
        if not self.key.isprintable():
            raise UsageError("the key has characters that no header field can have.", do="Type it again.")
        path = self.path
        if path is None:
            return
        if self.profile.strip():
            raise UsageError("there are two profiles, a file and a text.", where=str(path), do="Leave out one of them.")
        with suppress(OSError):  # the command says what is wrong with the file
            if self.key and not _names_the_key(path.read_text(encoding="utf-8", errors="replace")):
                raise _unused_key(str(path))


def read_form(body: bytes) -> Form:
    """The form in a request. Raises UsageError."""
    try:
        return msgspec.json.decode(body, type=Form)
    except msgspec.DecodeError as error:
        raise UsageError(f"this is no form of the page: {error}.", do="Load the page again.") from None


def _names_the_key(text: str) -> bool:
    return any(name in text for name in _NAMES_THE_KEY)


def _unused_key(where: str) -> UsageError:
    return UsageError(
        "the key would not be used, because this profile does not name it.",
        where=where,
        do=f"Write `principals: {{alice: ${KEY_NAME}}}` there, or leave the key empty.",
    )
