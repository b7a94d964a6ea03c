"""A page of sessions takes as long with many sessions as with few."""

import time
from contextlib import closing

from continuity_server.rules import Rules
from continuity_server.server import Parts, open_store
from continuity_server.settings import KEYLESS, Options, Settings

MANY = 60_000
INSERT = "INSERT INTO sessions (owner, id, root, created) VALUES (?, ?, ?, 0)"


def test_a_page_is_read_along_an_index(tmp_path):
    with closing(open_store(Settings(db=str(tmp_path / "c.db")), Rules(Options()), Parts())) as store:
        store._connection.execute("BEGIN")
        store._connection.executemany(INSERT, ((KEYLESS, f"s{number}", f"s{number}") for number in range(MANY)))
        store._connection.execute("COMMIT")
        began = time.perf_counter()
        pages = [store.page_of_sessions(KEYLESS, after, 20) for after in (None, "s30000", "s5")] * 10
        seconds = time.perf_counter() - began

    assert [[session.id for session in page][:2] for page in pages[:3]] == [
        ["s59999", "s59998"],
        ["s29999", "s29998"],
        ["s4", "s3"],
    ]
    assert seconds < 0.1
