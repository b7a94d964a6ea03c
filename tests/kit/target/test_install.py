"""Environments of targets are installed once, completely or not at all, and a failure shows the installer's own output."""

import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pip
import pytest
import uv
from processes import started

from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.target.build import Build
from continuity_conformance.target.install import npm_environment, python_environment

METADATA = "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own. No index is asked; that setting of pip also makes the kit choose pip."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    """A package without requirements."""
    path = tmp_path / "tiny_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_thing.py", "VALUE = 42\n")
        archive.writestr("tiny_thing-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny_thing-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny_thing-1.0.dist-info/RECORD", "")
    return str(path)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Python whose environments use the pip of this one: installing their own takes seconds."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "pip").symlink_to(Path(pip.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    python = tmp_path / "quick-python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" --without-pip\n')
    python.chmod(0o755)
    return str(python)


def value_in(folder: Path) -> str:
    command = [str(folder / "bin" / "python"), "-c", "import tiny_thing; print(tiny_thing.VALUE)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_installed_once(wheel: str, cache: Path):
    lines: list[str] = []

    folder = python_environment("tiny", [wheel], lines.append)
    lines_of_the_first = list(lines)
    again = python_environment("tiny", [wheel], lines.append)

    assert value_in(folder) == "42"
    assert folder == again
    assert folder.is_relative_to(cache / "session-continuity" / "targets")
    assert lines_of_the_first[0].startswith(f"installing {wheel} in {folder}")
    assert lines_of_the_first[-1].startswith("installed")
    assert lines == lines_of_the_first


def test_other_contents_have_another_folder(wheel: str, quick: str, tmp_path: Path):
    other = tmp_path / "other" / Path(wheel).name
    other.parent.mkdir()
    shutil.copy(wheel, other)

    folders = [python_environment("tiny", [each], print, python=quick) for each in (wheel, str(other))]

    assert folders[0] != folders[1]


def test_an_unfinished_environment_is_installed_again(wheel: str, quick: str):
    folder = python_environment("tiny", [wheel], print, python=quick)
    (folder / "continuity-finished").unlink()
    shutil.rmtree(folder / "lib")

    assert value_in(python_environment("tiny", [wheel], print, python=quick)) == "42"


def test_two_at_once_install_it_once(wheel: str, quick: str):
    lines: list[str] = []

    def install() -> None:
        python_environment("tiny", [wheel], lines.append, python=quick)

    threads = [threading.Thread(target=install) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(line.startswith("installed ") for line in lines) == 1


def test_a_failure_shows_the_installers_last_lines(tmp_path: Path, quick: str):
    with pytest.raises(KitError, match="cannot be installed: python ended with code 1") as caught:
        python_environment("tiny", [str(tmp_path / "nowhere.whl")], print, python=quick)

    assert "nowhere.whl" in caught.value.do


@pytest.fixture
def released(wheel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that has this one version."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(Path(wheel).parent))


@pytest.mark.usefixtures("released")
def test_an_unreleased_version_is_a_usage_error_of_one_line(quick: str, cache: Path):
    with pytest.raises(UsageError, match=r"tiny-thing==2\.0 cannot be installed\. .*\(from versions: 1\.0\)$"):
        python_environment("tiny", ["tiny-thing==2.0"], print, python=quick)

    assert not [path for path in cache.rglob("tiny-*") if path.is_dir()]


@pytest.mark.usefixtures("released")
def test_an_index_without_any_version_is_not_a_usage_error(quick: str):
    with pytest.raises(KitError, match="from versions: none"):
        python_environment("tiny", ["other-thing==2.0"], print, python=quick)


def test_a_wheel_that_was_built_again_is_installed_again(wheel: str, quick: str):
    requirement = Build(wheel).requirement("tiny-thing")
    before = python_environment("tiny", [requirement], print, python=quick)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny_other.py", "")
    after = python_environment("tiny", [requirement], print, python=quick)

    assert before != after
    assert [value_in(folder) for folder in (before, after)] == ["42", "42"]


def test_an_interrupted_installation_is_not_used(tmp_path: Path, cache: Path):
    """The installer ends with the kit, and the folder has no marker."""
    slow = tmp_path / "slow.py"
    slow.write_text("import sys, time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    slow_python = tmp_path / "python"
    slow_python.write_text(f"#!/bin/sh\nexec {sys.executable} {slow}\n")
    slow_python.chmod(0o755)
    script = (
        "from continuity_conformance.target.install import python_environment\n"
        f"python_environment('tiny', ['x'], lambda line: print(line, flush=True), python={str(slow_python)!r})\n"
    )
    command = [sys.executable, "-c", script]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as kit:
        assert kit.stdout is not None
        kit.stdout.readline()
        progress = kit.stdout.readline()
        kit.send_signal(2)
        kit.wait(10)

    assert "begun" in progress
    assert not list(cache.rglob("continuity-finished"))
    assert not [process for process in Path("/proc").glob("[0-9]*") if str(slow) in _command(process)]


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    with pytest.raises(KitError, match="XDG_CACHE_HOME"):
        python_environment("tiny", ["x"], print)


@pytest.fixture
def with_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv on PATH, with a cache of its own and without an index, and a pip without settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PATH", f"{Path(uv.find_uv_bin()).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))


@pytest.mark.usefixtures("with_uv")
def test_uv_installs_where_there_is_one(wheel: str):
    folder = python_environment("tiny", [Build(wheel).requirement("tiny-thing")], print)

    assert value_in(folder) == "42"
    assert "uv = " in (folder / "pyvenv.cfg").read_text()
    assert list(folder.rglob("tiny_thing.*.pyc"))


@pytest.mark.usefixtures("with_uv")
def test_a_user_who_tells_pip_where_packages_come_from_gets_pip(
    wheel: str, quick: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")

    folder = python_environment("tiny", [wheel], print, python=quick)

    assert value_in(folder) == "42"
    assert "uv = " not in (folder / "pyvenv.cfg").read_text()


@pytest.mark.usefixtures("with_uv", "wheel")
def test_an_unreleased_version_is_a_usage_error_with_uv_too():
    with pytest.raises(UsageError, match=r"tiny-thing==2\.0 cannot be installed\. .*no version of tiny-thing==2\.0"):
        python_environment("tiny", ["tiny-thing==2.0"], print)


@pytest.mark.usefixtures("with_uv", "wheel")
def test_a_package_that_the_index_does_not_have_is_not_a_usage_error_with_uv_either():
    with pytest.raises(KitError, match=r"uv ended with code \d+\. Its last output:(?s:.*)other-thing was not found"):
        python_environment("tiny", ["other-thing==2.0"], print)


@pytest.mark.usefixtures("with_uv")
def test_a_uv_that_does_not_run_is_not_used(wheel: str, quick: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = tmp_path / "shims" / "uv"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}{os.pathsep}{os.environ['PATH']}")

    assert value_in(python_environment("tiny", [wheel], print, python=quick)) == "42"


BACKEND = f"""\
import pathlib, zipfile

def build_wheel(directory, settings=None, metadata=None):
    with zipfile.ZipFile(directory + "/tiny_thing-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_thing.py", "VALUE = " + pathlib.Path("value.txt").read_text())
        archive.writestr("tiny_thing-1.0.dist-info/METADATA", {METADATA!r})
        archive.writestr("tiny_thing-1.0.dist-info/WHEEL", {WHEEL!r})
        archive.writestr("tiny_thing-1.0.dist-info/RECORD", "")
    return "tiny_thing-1.0-py3-none-any.whl"
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny-thing"
version = "1.0"
"""


def test_a_checkout_is_installed_again_where_its_sources_have_changed(quick: str, tmp_path: Path):
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for file, text in (("pyproject.toml", PROJECT), ("backend.py", BACKEND), ("value.txt", "1")):
        (checkout / file).write_text(text)
    requirement = Build(str(checkout)).requirement("tiny-thing")

    first = python_environment("tiny", [requirement], print, python=quick)
    (checkout / "build").mkdir()
    (checkout / "build" / "left.txt").write_text("left by a build")
    same = python_environment("tiny", [requirement], print, python=quick)
    (checkout / "value.txt").write_text("2")
    other = python_environment("tiny", [requirement], print, python=quick)

    assert first == same != other
    assert (value_in(first), value_in(other)) == ("1", "2")


def test_without_npm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(UsageError, match="there is no command npm"):
        npm_environment("tiny", ["x"], print)


def test_npm_packages_go_into_a_folder_of_their_own(tmp_path: Path):
    package = tmp_path / "tiny-npm"
    package.mkdir()
    (package / "package.json").write_text('{"name": "tiny-npm", "version": "1.0.0"}')

    folder = npm_environment("tiny", [str(package)], print, arguments=["--offline", "--install-links"])

    assert (folder / "node_modules" / "tiny-npm" / "package.json").exists()


def npm_package(folder: Path, name: str, more: str = "") -> str:
    """The file of a package, as npm publishes it."""
    source, file = folder / f"{name}.json", folder / f"{name}.tgz"
    source.write_text(f'{{"name": "{name}", "version": "1.0.0"{more}}}')
    with tarfile.open(file, "w:gz") as archive:
        archive.add(source, "package/package.json")
    return str(file)


def test_a_dependency_of_an_npm_package_may_be_replaced(tmp_path: Path):
    package = npm_package(tmp_path, "tiny-npm", ', "dependencies": {"not-there": "1.0.0"}')
    other = npm_package(tmp_path, "other-npm")

    folder = npm_environment(
        "tiny", [package], print, arguments=["--offline"], overrides={"not-there": f"file:{other}"}
    )

    assert '"other-npm"' in (folder / "node_modules" / "not-there" / "package.json").read_text()
