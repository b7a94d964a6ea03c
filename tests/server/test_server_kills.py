"""SIGKILL: in the middle of an upgrade, and right after an answer. What was there, or was answered, is there."""

import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import old_database
from reference_process import HEADER, KEYS, running

from continuity_server.rules import Rules
from continuity_server.server import Parts, open_store
from continuity_server.settings import Key, Options, Settings

KILLS = 50
ROWS = 600
UPGRADE = """
import logging, sys
from continuity_server.rules import Rules
from continuity_server.settings import Options
from continuity_server.store.backfill import Backfill
from continuity_server.store.upgrade import Upgrade
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
rules = Rules(Options())
Upgrade(rules, Backfill(rules), "alice").open(sys.argv[1]).close()
"""


def kill_in_mid_upgrade(path, seconds):
    """A process that says that it upgrades has so many seconds to live. Tells whether it was killed before its end."""
    command = [sys.executable, "-u", "-c", UPGRADE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert "upgrading" in process.stdout.readline()
        time.sleep(seconds)
        process.kill()
    return process.returncode != 0


def test_an_upgrade_that_is_killed_is_completed_by_the_next_start(tmp_path):
    old, path = tmp_path / "old.db", tmp_path / "c.db"
    responses = {f"resp_{number}": old_database.data(f"s{number}", "a", "b", "c") for number in range(ROWS)}
    old_database.make(old, responses, {f"slug {number}": f"resp_{number}" for number in range(ROWS + 10)})
    before, killed = old_database.rows(old), 0
    chance = random.Random(7)
    for _ in range(KILLS):
        for file in tmp_path.glob("c.db*"):
            file.unlink()
        shutil.copy(old, path)
        killed += kill_in_mid_upgrade(path, chance.uniform(0, 0.06))
        settings = Settings(db=str(path), keys=(Key("alice", "secret"),))
        store = open_store(settings, Rules(Options()), Parts())
        slugs = [store.slug("alice", f"slug {number}") for number in range(ROWS + 10)]
        store.close()

        assert before == old_database.rows(path)
        assert [f"s{number}" for number in range(ROWS)] == [slug.session for slug in slugs[:ROWS]]
        assert {slug.session for slug in slugs[ROWS:]} == {None}
    assert killed > KILLS / 2
    with running("--db", str(path), *KEYS) as server:
        assert server.respond("d", conversation="slug 3")[1][HEADER] == "s3"
        assert [text for _, text in server.stored("s3")][:2] == ["a", "Yes."]


def kill_after_answers(folder, name):
    """A server is killed as soon as it has answered, again and again. Gives what it was told, and what it has."""
    said = []
    with running("--db", str(folder / f"{name}.db"), *KEYS) as server:
        for number in range(KILLS // 2):
            said.append(f"turn {number}")
            assert server.chat(said[-1], "s")[0] == 200
            server.kill()
            server.start()
        return said, [text for role, text in server.stored("s") if role == "user"]


def test_an_answered_turn_survives_a_kill_right_after_the_answer(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda name: kill_after_answers(tmp_path, name), ("one", "other")))

    assert [said for said, _ in runs] == [stored for _, stored in runs]
