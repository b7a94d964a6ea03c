"""Write all formats of a report into a folder. Each is made from results.json alone, and written atomically."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.core.files import replace_file
from continuity_conformance.report import badge, checklist, html, junit, markdown, reproduce
from continuity_conformance.results.read import read
from continuity_conformance.results.recorded import Report

FILES: Final[dict[str, Callable[[Report], str]]] = {
    "report.html": html.render,
    "report.md": markdown.render,
    "junit.xml": junit.render,
    "checklist.md": lambda report: checklist.as_markdown(checklist.from_report(report)),
    "badge.svg": badge.as_svg,
    "badge.json": badge.as_json,
    "reproduce.sh": reproduce.render,
}


def forget(folder: Path) -> None:
    """Delete the report of an earlier run in this folder: it would look like the report of this run."""
    for name in FILES:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(
                f"an earlier report cannot be replaced ({error.strerror}).",
                where=str(folder / name),
                do="Name another folder, or delete the file.",
            ) from None


def write(results: Path, folder: Path) -> list[Path]:
    """Write every format of these results into this folder, and return the paths. Raises ContinuityError."""
    report = read(results)
    written = []
    for name, render in FILES.items():
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, render(report), executable=path.suffix == ".sh")
        except OSError as error:
            raise KitError(
                f"the report cannot be written ({error.strerror}).",
                where=str(path),
                do=f"Make the folder writable, then run: continuity report {results}",
            ) from None
        written.append(path)
    return written
