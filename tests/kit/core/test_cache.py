"""The kit's folder is in the user's cache, where the system keeps caches."""

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

from continuity_conformance.core.cache import user_cache


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("system", "folder"),
    [(Unix, ".cache/session-continuity"), (MacOS, "Library/Caches/session-continuity")],
)
def test_the_folder_is_where_the_system_keeps_caches(
    system: type, folder: str, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)

    assert user_cache() == home / folder


def test_on_windows_it_is_the_local_application_data(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platformdirs, "PlatformDirs", Windows)
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda _: str(home / "Local"))

    assert user_cache() == home / "Local" / "session-continuity"


@pytest.mark.parametrize("system", [Unix, MacOS])
def test_xdg_cache_home_names_another_cache_on_every_system(system: type, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)

    assert user_cache({"XDG_CACHE_HOME": "/elsewhere"}) == Path("/elsewhere/session-continuity")


def test_generated_data_is_kept_there_and_in_no_folder_that_others_can_prepare(home: Path):
    told = (
        "import continuity_conformance.fuzz.explore, hypothesis.configuration as c; print(c.storage_directory().path)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(home / "cache")}
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, env=environment, check=True)

    assert Path(done.stdout.strip()) == home / "cache" / "session-continuity" / "hypothesis"
