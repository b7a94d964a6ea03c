"""Files outside the store of a target, watched while sessions are named with their paths (ISOLATE-05)."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.failure import Unmet
from continuity_conformance.scenario.dialogue import Dialogue

_SUFFIXES: Final = ("", ".json", ".jsonl", ".md", ".txt", ".db", ".sqlite")
_STEP: Final = "the files outside the store"
_PARENTS: Final = 12
"""Enough steps up to reach the root from the usual folders of a target."""


@dataclass(frozen=True, slots=True)
class OutsideFiles:
    """A folder that the target must not touch. `planted`: a name that no file has. `secret`: the content of the files."""

    folder: Path
    planted: str
    secret: str
    before: Mapping[str, bytes]
    target_folder: Path | None

    def ids(self) -> Sequence[str]:
        """Return ids that are paths into the folder, in every notation."""
        absolute, parents, encoded = str(self.folder), "../" * _PARENTS, "%2e%2e%2f" * _PARENTS
        return (
            f"../{self.planted}",
            f"../../{self.planted}",
            f"..\\{self.planted}",
            f"{self.planted}/../../{self.planted}-2",
            f"{parents}{absolute[1:]}/{self.planted}",
            f"{encoded}{absolute[1:].replace('/', '%2f')}%2f{self.planted}",
            f"%2e%2e/{self.planted}",
            f"{absolute}/{self.planted}",
            f"{absolute}/./{self.planted}",
            f"{absolute}/secret",
            f"{absolute}/secret.json",
            f"{parents}{absolute[1:]}/secret.jsonl",
            f"file://{absolute}/secret.txt",
            f"C:\\{self.planted}",
            f"C:/{self.planted}",
        )

    def must_be_untouched(self) -> None:
        after = _contents(self.folder)
        touched = [name for name in sorted({*after, *self.before}) if after.get(name) != self.before.get(name)]
        touched += [path.name for path in self._planted_files()]
        if touched:
            raise Unmet("no file written, changed or deleted", ", ".join(touched), expectation="files", step=_STEP)

    def must_not_appear_in(self, text: str) -> None:
        if self.secret in text:
            raise Unmet("nothing of a file in what is told", "a file's content", expectation="files", step=_STEP)

    def clear(self) -> None:
        for path in self._planted_files():
            path.unlink()

    def _planted_files(self) -> list[Path]:
        """Return the files with the planted name beside the folder of the target."""
        parent = self.target_folder.parent if self.target_folder else self.folder.parent
        return [path for path in parent.glob(f"*{self.planted}*") if path.is_file()]


@contextmanager
def outside_files(dialogue: Dialogue) -> Iterator[OutsideFiles]:
    """Create files that must not change. If the kit did not start the target they prove nothing: that is noted."""
    started = dialogue.context.server.started
    secret, planted = (dialogue.variables.text(name) for name in ("$file-content", "$planted"))
    with tempfile.TemporaryDirectory(prefix="continuity-outside-") as folder_name:
        folder = Path(folder_name)
        for suffix in _SUFFIXES:
            (folder / f"secret{suffix}").write_text(secret, encoding="utf-8")
        files = OutsideFiles(folder, planted, secret, _contents(folder), started.file("{folder}") if started else None)
        try:
            yield files
        finally:
            files.clear()
    if started is None:
        dialogue.untested.append("files can be watched only where the kit starts the target")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
