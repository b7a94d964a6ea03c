"""Files outside the store of a target, watched while somebody names sessions by their paths (ISOLATE-05)."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.failure import Unmet
from continuity_conformance.scenario.dialogue import Dialogue

_ENDINGS: Final = ("", ".json", ".jsonl", ".md", ".txt", ".db", ".sqlite")
_STEP: Final = "the files outside the store"
_UP: Final = 12


@dataclass(frozen=True, slots=True)
class OutsideFiles:
    """A folder that is none of the target's business. `planted` is a name that no file has, `secret` what those files say."""

    folder: Path
    planted: str
    secret: str
    before: Mapping[str, bytes]
    target_folder: Path | None

    def ids(self) -> Sequence[str]:
        """Ids that lead there, in the ways in which paths are written."""
        absolute, ups, coded = str(self.folder), "../" * _UP, "%2e%2e%2f" * _UP
        return (
            f"../{self.planted}",
            f"../../{self.planted}",
            f"..\\{self.planted}",
            f"{self.planted}/../../{self.planted}-2",
            f"{ups}{absolute[1:]}/{self.planted}",
            f"{coded}{absolute[1:].replace('/', '%2f')}%2f{self.planted}",
            f"%2e%2e/{self.planted}",
            f"{absolute}/{self.planted}",
            f"{absolute}/./{self.planted}",
            f"{absolute}/secret",
            f"{absolute}/secret.json",
            f"{ups}{absolute[1:]}/secret.jsonl",
            f"file://{absolute}/secret.txt",
            f"C:\\{self.planted}",
            f"C:/{self.planted}",
        )

    def must_be_untouched(self) -> None:
        found = _contents(self.folder)
        touched = [name for name in sorted({*found, *self.before}) if found.get(name) != self.before.get(name)]
        touched += [path.name for path in self._planted_beside_the_target()]
        if touched:
            raise Unmet("no file written, changed or deleted", ", ".join(touched), expectation="files", step=_STEP)

    def must_be_unread(self, told: str) -> None:
        if self.secret in told:
            raise Unmet("nothing of a file in what is told", "a file's content", expectation="files", step=_STEP)

    def clear(self) -> None:
        for path in self._planted_beside_the_target():
            path.unlink()

    def _planted_beside_the_target(self) -> list[Path]:
        beside = self.target_folder.parent if self.target_folder else self.folder.parent
        return [path for path in beside.glob(f"*{self.planted}*") if path.is_file()]


@contextmanager
def outside_files(dialogue: Dialogue) -> Iterator[OutsideFiles]:
    """Files that must stay as they are. Where the kit did not start the target they prove nothing, and that is noted."""
    started = dialogue.context.server.started
    secret, planted = (dialogue.variables.text(name) for name in ("$file-content", "$planted"))
    with tempfile.TemporaryDirectory(prefix="continuity-outside-") as name:
        folder = Path(name)
        for ending in _ENDINGS:
            (folder / f"secret{ending}").write_text(secret, encoding="utf-8")
        files = OutsideFiles(folder, planted, secret, _contents(folder), started.file("{folder}") if started else None)
        try:
            yield files
        finally:
            files.clear()
    if started is None:
        dialogue.untested.append("files can be watched only where the kit starts the target")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
