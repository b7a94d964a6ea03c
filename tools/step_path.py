"""Counts the modules that one chat step passes through between `continuity check` and results.json.

    python tools/step_path.py            # prints the modules, and how many there are

It runs one requirement against the bundled server with a profiler. A module counts if one of its functions

- is on the call chain that leads from the command to the step,
- runs while the step plays (request, answer, judgement), or
- runs after it on its result, until results.json is written.

What happens once in a run, before any step (arguments, loading the spec, starting and calibrating the target), is printed too, as "set-up".
`docs/explanation/how-a-run-works.md` states the number; a test compares it.
"""

import contextlib
import inspect
import io
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from continuity_conformance.cli.main import main as continuity
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_spec import Step

REQUIREMENT: Final = "HISTORY-02"
_OURS: Final = re.compile(r"/(continuity_(?:conformance|spec|plugins)/.+)\.py\Z")
_LAST: Final = ("continuity_conformance/report/files", "write")


class StepPath:
    """Collects the modules, by whether they run before or with the step."""

    def __init__(self) -> None:
        self.setup: set[str] = set()
        self.step: set[str] = set()
        self._chain: set[str] = set()
        self._playing = False
        self._written = False

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """What `sys.setprofile` calls for each call of a function."""
        module = _module(frame) if event == "call" and not self._written else ""
        if not module:
            return
        self._written = (module, frame.f_code.co_name) == _LAST
        if not self._written:
            (self.step if self._playing else self.setup).add(module)

    def begin(self) -> None:
        """The step begins: from here on everything belongs to it, and so does the chain of callers."""
        self._playing = True

    def add_chain(self, frame: FrameType | None) -> None:
        while frame is not None:
            if module := _module(frame):
                self.step.add(module)
            frame = frame.f_back


def _module(frame: FrameType) -> str:
    """Our module that a frame is in; empty for others and for code that is not a function."""
    code = frame.f_code
    match = _OURS.search(code.co_filename)
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
    return match[1] if match and is_function else ""


def measure() -> StepPath:
    """Run the requirement and return what it passed through."""
    path = StepPath()
    original: Callable[[Dialogue, Step, str], object] = Dialogue.step

    def traced(dialogue: Dialogue, step: Step, number: str) -> object:
        if dialogue.context.decided is not None and dialogue.exchanges == [] and step.text and _is_scenario(step):
            for thread in threading.enumerate():
                path.add_chain(sys._current_frames().get(thread.ident or 0))  # noqa: SLF001 - the documented way to other threads' stacks
            path.begin()
        return original(dialogue, step, number)

    Dialogue.step = traced  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        threading.setprofile(path.profile)
        sys.setprofile(path.profile)
        try:
            continuity(["check", "-k", REQUIREMENT, "--report", folder])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            Dialogue.step = original  # type: ignore[method-assign, assignment]
    return path


def _is_scenario(step: Step) -> bool:
    """Steps of the calibration stand in no file."""
    return bool(step.place.file)


def main() -> None:
    path = measure()
    for title, modules in (("set-up", path.setup - path.step), ("step", path.step)):
        print(f"{title}: {len(modules)}")
        print("".join(f"  {module}\n" for module in sorted(modules)))


if __name__ == "__main__":
    main()
