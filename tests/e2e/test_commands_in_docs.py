"""Every command in README and docs runs, and prints what the page shows."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import certifi
import processes
import pytest
from commands_in_docs import ADDRESSES, DEFAULT_SERVER, ROOT, Shown, in_blocks, inline, matches, pages, server_of, words
from processes import started

from continuity_spec import load_spec

BIN = Path(sys.executable).parent
STAGED = ROOT / "docs" / "results"
FIRST_OF_CLASS = {each.name: each.ids[0] for each in load_spec().classes} | {"Hermes": "DERIVE-01"}
RUNS_ON = ("serve", "model", "ui")
"""Commands that run until they are stopped."""
NAMES = {
    "ID": "HISTORY-02",
    "NAME": "history-doubles",
    "FILE": "my.yaml",
    "PATTERN": "summary",
    "S": "7",
    "$RANDOM": "7",
    "DIR": "report",
    "hermes==0.19.0": "reference",
}
"""What a reader puts there; and the target of a plugin that needs no installation, in place of one that does (`make targets` starts that one)."""
NOT_RUN = {
    r"(session-)?continuity([-._]|$)": "the name of the command, of a file, a field or a module",
    r"(make|python tools/)": "a command for maintainers: the test below looks whether it exists",
    r"(continuity (check|run|torture)|pytest)\b.*(tiny|hermes|nanobot|openclaw)": "it installs a server; tests/real_targets and tests/kit/suite run plugins",
    r"continuity (run|spec) .*HISTORY-15": "an entry that the page asks the reader to write",
    r"continuity (spec|run|plugins|check|doctor|serve|model|baseline|compare|report|checklist|defects|explain|torture|diagnose|spec show|model --summary)$|pytest --target$": "the name of a command, without its arguments",
    r"continuity torture": "tests/e2e/test_torture.py runs it: it takes minutes",
    r"continuity serve --defect repeated-turn-swallowed": "a defect that the page asks the reader to write",
    r"continuity run house": "a pack that the page asks the reader to write",
    r"(\. |pip |uvx|pipx|uv |docker|eval |source )": "the shell or another program; tests/e2e/test_wheel.py and test_installation.py have what it does",
    r"continuity submit": "tests/kit/cli/test_submit.py runs it: it wants a complete run of today",
    r"schemathesis run": "tests/e2e/test_stock_schemathesis.py runs it",
}
CONTRACT = "CONTRACT-11"
"""What is played in place of a whole area of generated requests: tests/e2e/test_wheel.py plays the area, and tests/kit/cli/test_fuzz.py does with other seeds."""
USED = {0, 1, 5}
"""Exit codes of a run that reached a verdict."""


def not_run(command: str) -> bool:
    return any(re.match(pattern, command) for pattern in NOT_RUN)


@contextlib.contextmanager
def serving(arguments: str, folder: Path) -> Iterator[str]:
    """The bundled server with these arguments, on a free port."""
    given = re.sub(r"--port \d+", "--port 0", arguments)
    command = [BIN / "continuity", "serve", "--db", ":memory:", *words(given)]
    with started(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def default_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(DEFAULT_SERVER, tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """The folder that a reader may have: a checkout's examples, results of runs, a profile, a baseline."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("node_modules"))
    for name in (
        "report/results.json",
        "before/results.json",
        "2.0/results.json",
        "2.1/results.json",
        "hermes.json",
        "openclaw.json",
        "mine.json",
        "results.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(STAGED / "mastra-1.71.0" / "results.json", tmp_path / name)
    (tmp_path / "known.yaml").write_text("[]\n")
    for name in ("my.yaml", "profile.yaml"):
        (tmp_path / name).write_text("name: my gateway\nlimits: {parallel: 4}\n")
    shutil.copy(certifi.where(), tmp_path / "ca.pem")
    return tmp_path


def narrowed(command: list[str]) -> list[str]:
    """A command that would check everything checks one requirement: what is tested here is the command."""
    if command[:2] == ["continuity", "fuzz"]:
        return [("0" if before == "--minutes" else word) for before, word in zip(["", *command], command, strict=False)]
    is_check = command[:2] == ["continuity", "check"]
    if not is_check and command[:2] != ["pytest", "--target"]:
        return command
    named = next(
        (word for before, word in pairwise(command) if before in {"--class", "--continuity-class"}),
        "",
    )
    if "CONTRACT" in command:
        command = [CONTRACT if word == "CONTRACT" else word for word in command]
    if "-k" in command or CONTRACT in command:
        return [*command, "--examples" if is_check else "--continuity-examples", "1"]
    return [*command, "-k", FIRST_OF_CLASS[named.split(",")[0]] if named else "ECHO-02"]


def describe(command: list[str], folder: Path) -> None:
    """A profile without an address starts a server."""
    if "://" not in " ".join(command) and "my.yaml" in command and command[1] in {"check", "run"}:
        text = (folder / "examples" / "first" / "profile.yaml").read_text(encoding="utf-8")
        (folder / "my.yaml").write_text(text.replace("{profile}/", "{profile}/examples/first/"))


def called(shown: Shown, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    text = shown.command.replace(">", " > ")
    given = [NAMES.get(word, word) for word in words(ADDRESSES.sub(url, text))]
    redirected = given[given.index(">") + 1] if ">" in given else ""
    given = given[: given.index(">")] if redirected else given
    given = given if shown.output is not None else narrowed(given)
    for before, word in pairwise(given):
        if before in {"--write", "-o"}:
            (folder / word).unlink(missing_ok=True)
    describe(given, folder)
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "MY_KEY": "sk-for-tests",
        "COLUMNS": "80",
    }
    done = ended(given, folder, environment)
    if redirected:
        (folder / redirected).write_text(done.stdout)
    return done


def ended(given: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Ours needs no process, which would import everything again for each command."""
    if given[0] == "continuity":
        with contextlib.chdir(folder), patch.dict(os.environ, environment):
            return processes.called(*given[1:])
    return subprocess.run(given, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=280)


def runs_on(shown: Shown, folder: Path) -> str:
    """Start a command that does not end, and return its first line."""
    given = [NAMES.get(word, word) for word in words(re.sub(r"--port \d+", "--port 0", shown.command))]
    command = [BIN / given[0], *given[1:]]
    with started(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            return process.stdout.readline()
        finally:
            process.terminate()


def play(shown: Shown, url: str, folder: Path) -> None:
    if not_run(shown.command):
        return
    if words(shown.command)[1] in RUNS_ON:
        printed = runs_on(shown, folder)
        assert "http://127.0.0.1:" in printed, shown
        assert shown.output is None or matches(re.sub(r":\d+", ":…", shown.output), printed), (shown, printed)
        return
    done = called(shown, url, folder)
    assert done.returncode in USED, (shown.command, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    if shown.output is not None:
        printed = done.stdout.replace(url, "http://127.0.0.1:8080")
        assert matches(shown.output, printed), f"{shown.command}\n--- shown\n{shown.output}\n--- printed\n{printed}"


WITH_BLOCKS = [page for page in pages() if any(in_blocks(page.read_text(encoding="utf-8")))]
BY_SHELL = {"echo $?", "cat examples/first/profile.yaml"}


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, stage: Path, default_server: str):
    text = page.read_text(encoding="utf-8")
    arguments = server_of(text)
    own = contextlib.nullcontext(default_server) if arguments == DEFAULT_SERVER else serving(arguments, stage)
    fixes = re.findall(r"```diff\n-(.*)\n\+(.*)\n```", text)
    with own as url:
        for shown in in_blocks(text):
            if fixes and shown.output and "pass" in shown.output:
                fix(stage / "examples" / "first" / "server.py", *fixes[0])
            if shown.command in BY_SHELL:
                assert (
                    shown.command == "echo $?" or (stage / words(shown.command)[1]).read_text().strip() == shown.output
                )
            else:
                play(shown, url, stage)


def fix(file: Path, wrong: str, right: str) -> None:
    """Do what the page tells the reader to do."""
    text = file.read_text(encoding="utf-8")

    assert text.count(wrong) + text.count(right) == 1
    file.write_text(text.replace(wrong, right), encoding="utf-8")


IN_BLOCKS = {shown.command for page in WITH_BLOCKS for shown in in_blocks(page.read_text(encoding="utf-8"))}
INLINE = sorted(
    {
        command
        for page in pages()
        for command in inline(page.read_text(encoding="utf-8"))
        if command not in IN_BLOCKS and not not_run(command)
    }
)


@pytest.mark.parametrize("command", INLINE)
def test_a_command_in_a_sentence_runs(command: str, stage: Path, default_server: str):
    play(Shown(command), default_server, stage)


def test_every_make_target_and_program_of_the_docs_exists():
    named = {command for page in pages() for command in inline(page.read_text(encoding="utf-8"))} | IN_BLOCKS
    targets = {command.split()[1] for command in named if command.startswith("make ")}
    programs = {command.split()[1] for command in named if command.startswith("python tools/")}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(READY)", ".venv/.ready")

    assert [target for target in targets if not re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)] == []
    assert [program for program in programs if not (ROOT / program).is_file()] == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [("a\n…\nb", "a\nx\ny\nb", True), ("a …", "a 17 s\n", True), ("a\nb", "a\nc", False), ("a", "a\nb", False)],
)
def test_dots_stand_for_anything_and_nothing_else_does(shown, printed, same):
    assert matches(shown, printed) is same


def test_results_that_the_stage_uses_are_whole():
    assert json.loads((STAGED / "mastra-1.71.0" / "results.json").read_text(encoding="utf-8"))["finished"]
