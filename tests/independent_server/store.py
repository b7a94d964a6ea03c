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
REPLAYS = """
CREATE TABLE IF NOT EXISTS replays(principal TEXT NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
  session TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY(principal, scope, key));
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
    replay: tuple[str | None, str, str] | None = None  # The session that the request names, the Idempotency-Key, a hash of the body.
    replayed: str = ""  # What a repetition is answered with.


class Store:
    def __init__(self, path: str, keep: int, replays: bool = False) -> None:
        self.path, self.keep, self.replays = path, keep, replays
        self.late: list[dict[str, object]] = []  # Only for the defect response-write-behind.
        self.alive = " AND kind != 'deleted'" if bug("delete-tombstone") else ""
        self.faults: set[str] = set()
        self.db: sqlite3.Connection | None = None
        self.boot = 0
        self.seen: dict[tuple[str, str], sqlite3.Row] = {}

    def open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None)
        try:
            db.row_factory = sqlite3.Row
            db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + SCHEMA + REPLAYS * self.replays)
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
        return self.one(f"SELECT * FROM sessions WHERE principal = ? AND id = ?{self.alive}", principal, name)

    def named(self, principal: str, name: str) -> sqlite3.Row | None:
        """The session whose slug a new slug of it may contradict."""
        row = self.session(principal, name)
        if row is None and bug("conflict-without-principal"):
            row = self.one("SELECT * FROM sessions WHERE id = ? AND slug NOT NULL", name)
        return row

    def replay(self, principal: str, scope: str, key: str) -> sqlite3.Row | None:
        return self.one("SELECT * FROM replays WHERE principal = ? AND scope = ? AND key = ?", principal, scope, key)

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
        for late in self.late:
            if (late["principal"], late["id"]) == (principal, name):
                return late  # type: ignore[return-value]
        row = self.one(f"SELECT * FROM responses WHERE principal = ? AND id {'LIKE' if bug('like-lookup') else '='} ?", principal, name)
        if row is not None and bug("deleted-response-continues"):
            self.seen[principal, name] = row
        return row

    def sessions(self, principal: str, limit: int, after: str | None) -> list[sqlite3.Row] | None:
        """A page, the newest first, with one row more than asked for if there are more. None if `after` names nothing."""
        query, values = f"SELECT * FROM sessions WHERE principal = ?{self.alive}", [principal]
        order = "head" if bug("page-by-activity") else "seq"
        if after is not None:
            last = self.one(f"SELECT * FROM sessions WHERE id = ? AND (principal = ? OR ?){self.alive}", after, principal,
                            bug("after-foreign-cursor"))
            if last is None:
                return None
            query, values = query + f" AND {order} < ?", [principal, last[order]]
            query += f" AND created < {int(last['created'])}" if bug("page-by-second") else ""
        with self.use("read") as db:
            most = min(limit + 1, 100) if bug("has-more-at-cap") else limit + 1
            return db.execute(query + f" ORDER BY {order} DESC LIMIT {most}", values).fetchall()

    # Writing

    def add(self, db: sqlite3.Connection, principal: str, node: int | None, entries: list[Entry]) -> int | None:
        for kind, message in entries:
            if bug("stores-text-only") and isinstance(message.get("content"), list):
                message = message | {"content": text_of(message["content"])}
            if bug("text-column-64k") and isinstance(message.get("content"), str):
                message = message | {"content": message["content"].encode()[:65535].decode("utf-8", "ignore")}
            if bug("tool-result-reserialized") and message["role"] == "tool" and isinstance(message["content"], str):
                try:
                    message = message | {"content": json.dumps(json.loads(message["content"]), ensure_ascii=False)}
                except ValueError:
                    pass
            node = db.execute("INSERT INTO nodes(principal, parent, kind, message) VALUES (?, ?, ?, ?)",
                              (principal, node, kind, json.dumps(message))).lastrowid
        return node

    def commit(self, turn: Turn, answer: Json, rotated: str | None, response: Json | None) -> None:
        """Stores a whole turn in one transaction. `rotated` is the id of the session that compression creates."""
        with self.use("write") as db:
            self.flush(db)
            lost = turn.new if rotated and turn.stream and bug("stream-rotation-loses-question") else 0
            node = self.add(db, turn.principal, turn.anchor, [*turn.fresh[:len(turn.fresh) - lost], ("", answer)])
            if rotated:
                slug = "NULL" if bug("rotation-by-chat-drops-slug") else "slug"
                db.execute("INSERT INTO sessions(principal, id, created, kind, parent, slug, head) SELECT principal, ?, ?, 'compression',"
                           f" id, {slug}, ? FROM sessions WHERE principal = ? AND id = ?",
                           (rotated, time.time(), node, turn.principal, turn.session))
                db.execute("UPDATE sessions SET next = ?, end_reason = 'compression' WHERE principal = ? AND id = ?",
                           (rotated, turn.principal, turn.session))
            else:
                db.execute("INSERT INTO sessions(principal, id, created, kind, parent, head) VALUES (?, ?, ?, ?, ?, ?)"
                           " ON CONFLICT(principal, id) DO UPDATE SET head = excluded.head"
                           + (", parent = CASE kind WHEN 'deleted' THEN excluded.parent ELSE parent END,"
                              " kind = CASE kind WHEN 'deleted' THEN excluded.kind ELSE kind END" if bug("delete-tombstone") else ""),
                           (turn.principal, turn.session, time.time(), turn.kind, turn.parent, node))
            if turn.slug is not None and response is not None:
                self.bind(db, turn, rotated, response["id"])
            if turn.replay is not None:
                db.execute("INSERT OR REPLACE INTO replays(principal, scope, key, digest, session, answer) VALUES (?, ?, ?, ?, ?, ?)",
                           (turn.principal, turn.root if turn.replay[0] is None else turn.replay[0], *turn.replay[1:],
                            rotated or turn.session, turn.replayed))
            if response is not None:
                row = (turn.principal, response["id"], turn.session if bug("rotating-response-branches") else rotated or turn.session,
                       turn.head if turn.stream and bug("stream-response-node") else node, json.dumps(response))
                if bug("response-write-behind"):
                    self.late = [dict(zip(("principal", "id", "session", "node", "body"), row, strict=True))]
                else:
                    db.execute("INSERT INTO responses(principal, id, session, node, body) VALUES (?, ?, ?, ?, ?)", row)
                self.evict(db, "principal = ? AND seq IN (SELECT seq FROM responses WHERE principal = ?1 ORDER BY"
                           f" {'id' if bug('evicts-by-id') else 'seq'} DESC LIMIT -1 OFFSET ?)", turn.principal, self.keep)

    def flush(self, db: sqlite3.Connection) -> None:
        """Only for the defect response-write-behind."""
        for row in self.late:
            db.execute("INSERT INTO responses(principal, id, session, node, body) VALUES (:principal, :id, :session, :node, :body)", row)
        self.late = []

    def evict(self, db: sqlite3.Connection, where: str, *values: object, cache: bool = True) -> None:
        """Deletes the responses for which `where` holds, because the cache is full or because somebody asked for it."""
        gone: list[sqlite3.Row] = []
        if bug("evict-sweeps-session") or bug("branch-needs-its-response"):
            gone = db.execute(f"SELECT * FROM responses WHERE {where}", values).fetchall()
        db.execute(f"DELETE FROM responses WHERE {where}", values)
        for row in gone:
            if bug("branch-needs-its-response"):
                db.execute("UPDATE nodes SET parent = NULL WHERE parent = ?1 AND id > (SELECT min(id) FROM nodes WHERE parent = ?1)",
                           (row["node"],))
            if bug("evict-sweeps-session") and cache:
                db.execute("DELETE FROM sessions WHERE principal = ?1 AND id = ?2 AND id LIKE 'sess!_%' ESCAPE '!' AND slug IS NULL AND"
                           " next IS NULL AND kind != 'compression' AND NOT EXISTS (SELECT * FROM responses WHERE principal = ?1"
                           " AND session = ?2)", (row["principal"], row["session"]))

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

    def delete_response(self, principal: str, name: str, cache: bool = False) -> bool:
        known = self.response(principal, name) is not None
        with self.use("write") as db:
            self.flush(db)
            self.evict(db, "(principal = ? OR ?) AND id = ?", principal, bug("delete-foreign-response"), name, cache=cache)
        return known

    def delete_session(self, principal: str, name: str) -> None:
        """Deletes a session with its whole compression chain, its slugs and responses. Branches keep their copies."""
        todo = [name if bug("delete-downstream-only") else self.root(principal, name)]
        with self.use("write") as db:
            self.flush(db)
            while todo:
                one = (principal, todo.pop())
                todo += [row["id"] for row in db.execute("SELECT id FROM sessions WHERE principal = ? AND parent = ?2 AND id != ?2"
                                                         " AND kind = 'compression'", one)]
                if bug("delete-tombstone"):
                    db.execute("UPDATE sessions SET kind = 'deleted', head = NULL, parent = NULL, next = NULL, end_reason = NULL"
                               " WHERE principal = ? AND id = ?", one)
                else:
                    db.execute("DELETE FROM sessions WHERE principal = ? AND id = ?", one)
                if self.replays and not bug("idem-survives-delete"):
                    db.execute("DELETE FROM replays WHERE principal = ?1 AND ?2 IN (scope, session)", one)
                db.execute("DELETE FROM slugs WHERE principal = ? AND session = ?", one)
                db.execute("DELETE FROM responses WHERE principal = ? AND session = ?", one)
            kept = "" if bug("gc-forgets-responses") else " UNION SELECT node FROM responses WHERE principal = ?1"
            db.execute("DELETE FROM nodes WHERE principal = ?1 AND id NOT IN (WITH RECURSIVE live(id) AS (SELECT head FROM sessions"
                       f" WHERE principal = ?1{kept} UNION SELECT n.parent FROM nodes n JOIN live ON n.id = live.id)"
                       " SELECT id FROM live WHERE id NOT NULL)", (principal,))
