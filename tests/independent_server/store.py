"""The store: one SQLite database. Messages are the nodes of a tree that only grows, so a response or a branch that remembers a
node has the history up to it, whatever becomes of the session later."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from defects import bug
from rules import Entry, Json, text_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS nodes(id INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, parent INTEGER, kind TEXT NOT NULL,
  message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions(seq INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, id TEXT NOT NULL,
  created REAL NOT NULL, kind TEXT NOT NULL, parent TEXT, next TEXT, end_reason TEXT, slug TEXT, head INTEGER, UNIQUE(principal, id));
CREATE TABLE IF NOT EXISTS slugs(principal TEXT NOT NULL, slug TEXT NOT NULL, session TEXT NOT NULL, last_response TEXT, boot INTEGER,
  PRIMARY KEY(principal, slug));
CREATE TABLE IF NOT EXISTS responses(seq INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, id TEXT NOT NULL,
  session TEXT NOT NULL, node INTEGER, body TEXT NOT NULL, UNIQUE(principal, id));
CREATE INDEX IF NOT EXISTS children ON sessions(principal, parent);
"""
HISTORY = """WITH RECURSIVE h(id, parent, kind, message, depth) AS (SELECT id, parent, kind, message, 0 FROM nodes WHERE id = ?
  UNION ALL SELECT n.id, n.parent, n.kind, n.message, depth + 1 FROM nodes n JOIN h ON n.id = h.parent WHERE depth < ?)
  SELECT id, kind, message FROM h ORDER BY depth DESC"""


class StoreError(Exception):
    """The store cannot be read or written now."""


@dataclass
class Turn:
    """Where a turn runs, and what it adds."""

    principal: str
    asked: str  # The id that the client sent, or that the server derived, minted or found for it.
    session: str  # The tip, or the id of a session that this turn starts.
    root: str
    exists: bool = False
    head: int | None = None
    history: list[tuple[int, str, Json]] = field(default_factory=list)
    kind: str = "session"
    parent: str | None = None
    slug: str | None = None
    store: bool = True
    stream: bool = False
    degraded: bool = False
    anchor: int | None = None  # The node that `fresh` and the answer are appended to.
    fresh: list[Entry] = field(default_factory=list)
    new: int = 0  # How many of `fresh`, at its end, are new input.
    compressed: bool = False


class Store:
    def __init__(self, path: str, keep: int) -> None:
        self.path, self.keep = path, keep
        self.faults: set[str] = set()
        self.db: sqlite3.Connection | None = None
        self.boot = 0
        self.seen: dict[tuple[str, str], sqlite3.Row] = {}

    def open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None)
        try:
            db.row_factory = sqlite3.Row
            db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + SCHEMA)
            if bug("slug-pruned-at-start"):
                db.execute("DELETE FROM slugs WHERE last_response NOT IN (SELECT id FROM responses)")
            if bug("idle-slug-cleanup"):
                self.boot = db.execute("PRAGMA user_version").fetchone()[0] + 1
                db.execute(f"PRAGMA user_version={self.boot}")
                db.execute("DELETE FROM slugs WHERE boot < ?", (self.boot - 1,))
            if bug("branch-becomes-next"):
                db.execute("UPDATE sessions AS s SET next = (SELECT max(c.id) FROM sessions c WHERE c.principal = s.principal"
                           " AND c.parent = s.id) WHERE next IS NULL")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        if self.db is not None:
            self.db.close()
            self.db = None

    @contextmanager
    def use(self, *needs: str) -> Iterator[sqlite3.Connection]:
        """The connection, for reading or in a transaction that is committed at the end. After an error it is opened again."""
        if self.faults.intersection(needs):
            raise StoreError(f"a fault of {needs} is switched on")
        try:
            db = self.db = self.db or self.open()
            if "write" in needs and not db.in_transaction:
                db.execute("BEGIN IMMEDIATE")
            yield db
            if db.in_transaction and bug("group-commit"):
                asyncio.get_running_loop().call_later(0.05, lambda: db.in_transaction and db.execute("COMMIT"))
            elif db.in_transaction:
                db.execute("COMMIT")
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise StoreError(str(error)) from error
            raise

    # Reading

    def one(self, query: str, *values: object) -> sqlite3.Row | None:
        with self.use("read") as db:
            row: sqlite3.Row | None = db.execute(query, values).fetchone()
            return row

    def session(self, principal: str, name: str) -> sqlite3.Row | None:
        return self.one("SELECT * FROM sessions WHERE principal = ? AND id = ?", principal, name)

    def walk(self, query: str, principal: str, name: str, hops: int) -> str:
        """Follows the links that the query finds until there is none, or until they would lead back."""
        seen = {name}
        if "lineage" in self.faults:
            raise StoreError("a fault of lineage is switched on")
        while hops and (row := self.one(query, principal, name)) is not None and row["id"] not in seen:
            name, hops = row["id"], hops - 1
            seen.add(name)
        return name

    def tip(self, principal: str, name: str, hops: int = -1) -> str:
        if bug("tip-without-principal"):
            return self.walk("SELECT next AS id FROM sessions WHERE ?1 NOT NULL AND id = ?2 AND next NOT NULL", principal, name, hops)
        return self.walk("SELECT c.id FROM sessions p JOIN sessions c ON c.principal = p.principal AND c.id = p.next"
                         " WHERE p.principal = ? AND p.id = ?", principal, name, hops)

    def root(self, principal: str, name: str) -> str:
        return self.walk("SELECT p.id FROM sessions c JOIN sessions p ON p.principal = c.principal AND p.id = c.parent"
                         " WHERE c.principal = ? AND c.id = ? AND c.kind = 'compression'", principal, name, -1)

    def history(self, node: int | None) -> list[tuple[int, str, Json]]:
        with self.use("read") as db:
            rows = db.execute(HISTORY, (node, 49 if bug("history-window") else 1 << 60))
            return [(row["id"], row["kind"], json.loads(row["message"])) for row in rows]

    def slug(self, principal: str, slug: str) -> sqlite3.Row | None:
        collate = " COLLATE RTRIM" if bug("slug-rtrim") else ""
        return self.one(f"SELECT * FROM slugs WHERE principal = ? AND slug = ?{collate}", principal, slug)

    def response(self, principal: str, name: str, cached: bool = False) -> sqlite3.Row | None:
        if cached and (principal, name) in self.seen:
            return self.seen[principal, name]
        row = self.one(f"SELECT * FROM responses WHERE principal = ? AND id {'LIKE' if bug('like-lookup') else '='} ?", principal, name)
        if row is not None and bug("deleted-response-continues"):
            self.seen[principal, name] = row
        return row

    def sessions(self, principal: str, limit: int, after: str | None) -> list[sqlite3.Row] | None:
        """A page, the newest first, with one row more than asked for if there are more. None if `after` names nothing."""
        query, values = "SELECT * FROM sessions WHERE principal = ?", [principal]
        if after is not None:
            last = self.one("SELECT * FROM sessions WHERE id = ? AND (principal = ? OR ?)", after, principal, bug("after-foreign-cursor"))
            if last is None:
                return None
            query, values = query + " AND seq < ?", [principal, last["seq"]]
            query += f" AND created < {int(last['created'])}" if bug("page-by-second") else ""
        with self.use("read") as db:
            return db.execute(query + f" ORDER BY seq DESC LIMIT {limit + 1}", values).fetchall()

    # Writing

    def add(self, db: sqlite3.Connection, principal: str, node: int | None, entries: list[Entry]) -> int | None:
        for kind, message in entries:
            if bug("stores-text-only") and isinstance(message.get("content"), list):
                message = message | {"content": text_of(message["content"])}
            node = db.execute("INSERT INTO nodes(principal, parent, kind, message) VALUES (?, ?, ?, ?)",
                              (principal, node, kind, json.dumps(message))).lastrowid
        return node

    def commit(self, turn: Turn, answer: Json, rotated: str | None, response: Json | None) -> None:
        """Stores a whole turn in one transaction. `rotated` is the id of the session that compression creates."""
        with self.use("write") as db:
            lost = turn.new if rotated and turn.stream and bug("stream-rotation-loses-question") else 0
            node = self.add(db, turn.principal, turn.anchor, [*turn.fresh[:len(turn.fresh) - lost], ("", answer)])
            if rotated:
                db.execute("INSERT INTO sessions(principal, id, created, kind, parent, slug, head) SELECT principal, ?, ?, 'compression',"
                           " id, slug, ? FROM sessions WHERE principal = ? AND id = ?",
                           (rotated, time.time(), node, turn.principal, turn.session))
                db.execute("UPDATE sessions SET next = ?, end_reason = 'compression' WHERE principal = ? AND id = ?",
                           (rotated, turn.principal, turn.session))
            else:
                db.execute("INSERT INTO sessions(principal, id, created, kind, parent, head) VALUES (?, ?, ?, ?, ?, ?)"
                           " ON CONFLICT(principal, id) DO UPDATE SET head = excluded.head",
                           (turn.principal, turn.session, time.time(), turn.kind, turn.parent, node))
            if turn.slug is not None and response is not None:
                self.bind(db, turn, rotated, response["id"])
            if response is not None:
                db.execute("INSERT INTO responses(principal, id, session, node, body) VALUES (?, ?, ?, ?, ?)",
                           (turn.principal, response["id"], rotated or turn.session,
                            turn.head if turn.stream and bug("stream-response-node") else node, json.dumps(response)))
                db.execute("DELETE FROM responses WHERE seq IN (SELECT seq FROM responses WHERE principal = ? ORDER BY"
                           f" {'id' if bug('evicts-by-id') else 'seq'} DESC LIMIT -1 OFFSET ?)", (turn.principal, self.keep))

    def bind(self, db: sqlite3.Connection, turn: Turn, rotated: str | None, response: str | None) -> None:
        db.execute("INSERT INTO slugs(principal, slug, session, last_response, boot) VALUES (?, ?, ?, ?, ?) ON CONFLICT(principal, slug)"
                   " DO UPDATE SET last_response = excluded.last_response, boot = excluded.boot",
                   (turn.principal, turn.slug, turn.session, response, self.boot))
        db.execute("UPDATE sessions SET slug = ? WHERE principal = ? AND id IN (?, ?)",
                   (turn.slug, turn.principal, turn.session, rotated))

    def move_head(self, turn: Turn, node: int | None, entries: list[Entry]) -> int | None:
        """Only for the defect draft-question."""
        with self.use("write") as db:
            node = self.add(db, turn.principal, node, entries)
            db.execute("UPDATE sessions SET head = ? WHERE principal = ? AND id = ?", (node, turn.principal, turn.session))
        return node

    def delete_response(self, principal: str, name: str) -> bool:
        known = self.response(principal, name) is not None
        with self.use("write") as db:
            db.execute("DELETE FROM responses WHERE (principal = ? OR ?) AND id = ?", (principal, bug("delete-foreign-response"), name))
        return known

    def delete_session(self, principal: str, name: str) -> None:
        """Deletes a session with its whole compression chain, its slugs and responses. Branches keep their copies."""
        todo = [name if bug("delete-downstream-only") else self.root(principal, name)]
        with self.use("write") as db:
            while todo:
                one = (principal, todo.pop())
                todo += [row["id"] for row in db.execute("SELECT id FROM sessions WHERE principal = ? AND parent = ?2 AND id != ?2"
                                                         " AND kind = 'compression'", one)]
                db.execute("DELETE FROM sessions WHERE principal = ? AND id = ?", one)
                db.execute("DELETE FROM slugs WHERE principal = ? AND session = ?", one)
                db.execute("DELETE FROM responses WHERE principal = ? AND session = ?", one)
            kept = "" if bug("gc-forgets-responses") else " UNION SELECT node FROM responses WHERE principal = ?1"
            db.execute("DELETE FROM nodes WHERE principal = ?1 AND id NOT IN (WITH RECURSIVE live(id) AS (SELECT head FROM sessions"
                       f" WHERE principal = ?1{kept} UNION SELECT n.parent FROM nodes n JOIN live ON n.id = live.id)"
                       " SELECT id FROM live WHERE id NOT NULL)", (principal,))
