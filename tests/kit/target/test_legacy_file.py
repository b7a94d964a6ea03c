"""`legacy` names a database that the kit replaces. It never names a file of the user."""

import asyncio
import itertools
import os
import sys
from pathlib import Path

import pytest

from continuity_conformance.core.errors import UsageError
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.server import Server, start_server
from continuity_spec import SpecError

SERVER = (sys.executable, str(Path(__file__).parents[2] / "servers" / "process_server.py"), "{port}")
USERS = b"the user's own data"


def profile_with(folder: Path, legacy: str) -> Profile:
    path = folder / "profile.yaml"
    path.write_text(f"name: mine\nlegacy: '{legacy}'\n")
    return load_profile(path)


@pytest.mark.parametrize(
    "legacy",
    [
        "/home/me/gateway.db",
        "gateway.db",
        "~/gateway.db",
        "{folder}",
        "{folder}/",
        "{folder}-old/gateway.db",
        "{folder}/../gateway.db",
        "{folder}/a/../../gateway.db",
        "{folder}/..",
        "x/{folder}/gateway.db",
    ],
)
def test_a_profile_cannot_name_a_file_outside_the_folder(tmp_path: Path, legacy: str):
    with pytest.raises(SpecError) as caught:
        profile_with(tmp_path, legacy)

    message = str(caught.value)
    assert f'{legacy} is not a valid value for "legacy".' in message
    assert "profile.yaml:2:" in message
    assert "such as {folder}/responses.db" in message


@pytest.mark.parametrize("legacy", ["{folder}/gateway.db", "{folder}/home/a..b/.gateway", "{folder}/{port}.db"])
def test_a_profile_names_a_file_in_the_folder(tmp_path: Path, legacy: str):
    assert profile_with(tmp_path, legacy).legacy == legacy


def refusal(legacy: str, link: Path | None = None) -> str:
    """The error where a plugin's profile names this file. `link`: what `{folder}/link` points to."""

    async def replace_database(server: Server) -> None:
        assert server.started is not None
        if link is not None:
            server.started.file("{folder}/link").symlink_to(link)
        try:
            await server.restart_on_database([], 1)
        finally:
            await server.stop()

    async def play() -> None:
        await replace_database(await start_server(Profile("mine", process=Process(SERVER), legacy=legacy), ""))

    with pytest.raises(UsageError) as caught:
        asyncio.run(play())
    return str(caught.value)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A database of the user, with its journals."""
    database = tmp_path / "gateway.db"
    for suffix in ("", "-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).write_bytes(USERS)
    return database


def untouched(users: Path) -> bool:
    return [path.read_bytes() for path in users.parent.glob("gateway.db*")] == [USERS] * 4


def test_a_file_that_a_plugin_names_outside_the_folder_stays(users: Path):
    message = refusal(str(users))

    assert untouched(users)
    assert message.startswith(f"legacy: {users}:")
    assert "{folder}" in message


def test_a_file_behind_a_linked_folder_stays(users: Path):
    refusal("{folder}/link/gateway.db", users.parent)

    assert untouched(users)


def test_a_file_behind_a_link_stays(users: Path):
    refusal("{folder}/link", users)

    assert untouched(users)


def test_the_folder_itself_is_no_database():
    assert "{folder}" in refusal("{folder}/.")


def test_a_journal_may_disappear_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SQLite deletes it while the kit watches the files of the database."""
    database, journal = tmp_path / "gateway.db", tmp_path / "gateway.db-journal"
    database.touch()
    journal.touch()
    stat, looks = Path.stat, itertools.count(1)

    def gone_at_every_second_look(path: Path, **how: bool) -> os.stat_result:
        if path == journal and next(looks) % 2 == 0:
            raise FileNotFoundError
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", gone_at_every_second_look)
    monkeypatch.setattr(Server, "database", database)
    server = Server("", Profile("mine"))

    seen = [[name for name, *_ in asyncio.run(server._database_state())] for _ in range(2)]

    assert seen == [[database.name, journal.name], [database.name]]
