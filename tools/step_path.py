"""Counts the modules that one chat step passes through between `continuity check` and results.json.

    python tools/step_path.py            # prints the modules, and how many there are

It runs one requirement against the bundled server with a profiler. A module counts if one of its functions

- is on the call chain that leads from the command to the step,
- runs while the step plays (request, answer, judgement), or
- runs after it on its result, until results.json is written.

What happens once in a run, before any step (arguments, loading the spec, starting and calibrating the target) or after all of them (stopping the
target), is printed too, as "once a run".
`docs/explanation/how-a-run-works.md` states the number; a test compares it.
"""

import contextlib
import inspect
import io
import re
import sys
import tempfile
import threading
from types import FrameType
from typing import Final
from unittest.mock import patch

from continuity_conformance.cli.main import main as continuity
from continuity_conformance.run.session import Run
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_spec import Step

REQUIREMENT: Final = "ECHO-02"  # plain chat turns, with expectations on the session and on what the model saw
_OURS: Final = re.compile(r"/(continuity_(?:conformance|spec|plugins)/.+)\.py\Z")
_LAST: Final = ("continuity_conformance/report/files", "write")


class StepPath:
    """Collects the modules: those of the step, and those that run once a run."""

    def __init__(self) -> None:
        self.step: set[str] = set()
        self.once: set[str] = set()
        self.playing = False
        self._written = False

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """What `sys.setprofile` calls for each call of a function."""
        module = _module(frame) if event == "call" and not self._written else ""
        if not module:
            return
        self._written = (module, frame.f_code.co_name) == _LAST
        if not self._written:
            (self.step if self.playing else self.once).add(module)

    def add_callers(self) -> None:
        """Add the modules that wait for the step, in every thread."""
        for frame in sys._current_frames().values():  # noqa: SLF001 - the documented way to the stacks of other threads
            caller: FrameType | None = frame
            while caller is not None:
                self.step |= {_module(caller)} - {""}
                caller = caller.f_back


def _module(frame: FrameType) -> str:
    """Our module that a frame is in; empty for others and for code that is not a function."""
    code = frame.f_code
    match = _OURS.search(code.co_filename)
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
    return match[1] if match and is_function else ""


def measure() -> StepPath:
    """Run the requirement and return what its steps passed through."""
    path = StepPath()
    step, close = Dialogue.step, Run.close

    async def traced_step(dialogue: Dialogue, one: Step, number: str) -> list[Exchange]:
        if one.place.file:  # the steps of the calibration are in no file
            path.add_callers()
            path.playing = True
        return await step(dialogue, one, number)

    def traced_close(run: Run) -> None:
        path.playing = False
        close(run)
        path.playing = True

    with (
        patch.object(Dialogue, "step", traced_step),
        patch.object(Run, "close", traced_close),
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        threading.setprofile(path.profile)
        sys.setprofile(path.profile)
        try:
            continuity(["check", "-k", REQUIREMENT, "--report", folder])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return path


def main() -> None:
    path = measure()
    for title, modules in (("once a run", path.once - path.step), ("the step", path.step)):
        print(f"{title}: {len(modules)}")
        print("".join(f"  {module}\n" for module in sorted(modules)))


if __name__ == "__main__":
    main()
