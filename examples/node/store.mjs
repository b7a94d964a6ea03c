// The store, in SQLite. Every turn points to the turn before it: a history is a linked list that is read from its end.
// A session points to its last turn, a response to its own. Therefore a branch is only a second list with the same
// beginning, and a response keeps the history up to itself, however its session goes on (4.4, SLUG-13).
import { DatabaseSync } from 'node:sqlite';
import { ApiError } from './formats.mjs';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS turns (id INTEGER PRIMARY KEY, previous INTEGER, messages TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS sessions (principal TEXT NOT NULL, id TEXT NOT NULL, slug TEXT, last_turn INTEGER NOT NULL,
    last_response TEXT, PRIMARY KEY (principal, id), UNIQUE (principal, slug));
  CREATE TABLE IF NOT EXISTS responses (number INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, turn INTEGER NOT NULL, body TEXT NOT NULL);`;

// The slug is stored with its session, not with a response that may be evicted (SLUG-03).
const UPSERT_SESSION = `
  INSERT INTO sessions (principal, id, slug, last_turn, last_response) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (principal, id) DO UPDATE SET last_turn = excluded.last_turn, slug = coalesce(slug, excluded.slug),
    last_response = coalesce(excluded.last_response, last_response)`;

const EVICT_OLDEST = `DELETE FROM responses WHERE number IN
  (SELECT number FROM responses WHERE principal = ? ORDER BY number DESC LIMIT -1 OFFSET ?)`;

const HISTORY = `
  WITH RECURSIVE chain (previous, messages, age) AS (
    SELECT previous, messages, 0 FROM turns WHERE id = ?
    UNION ALL SELECT turns.previous, turns.messages, age + 1 FROM turns JOIN chain ON turns.id = chain.previous)
  SELECT messages FROM chain ORDER BY age DESC`;

export class Store {
  #db = null; // one connection for all turns (HISTORY-12)
  faults = { read: false, write: false }; // set by the control API only

  constructor(path, keepResponses) { Object.assign(this, { path, keepResponses }); }

  // Always by principal and id, so that a foreign id is like an unknown one (ISOLATE-06).
  session(...key) { return this.#rows('SELECT * FROM sessions WHERE principal = ? AND id = ?', ...key)[0]; }
  sessionOfSlug(...key) { return this.#rows('SELECT * FROM sessions WHERE principal = ? AND slug = ?', ...key)[0]; }
  response(...key) { return this.#rows('SELECT * FROM responses WHERE principal = ? AND id = ?', ...key)[0]; }

  /** The messages of a turn and of all turns before it, the oldest first. */
  history(lastTurn) {
    return this.#rows(HISTORY, lastTurn).flatMap(({ messages }) => JSON.parse(messages));
  }

  /** Fails if nothing can be written now, so that such a turn is refused before it reaches the model (4.7). */
  assertWritable() { this.#write(() => {}); }

  /** Stores a whole turn (messages, session, slug, response) in one transaction (DURABLE-01, DURABLE-03). */
  commitTurn({ principal, slug }, { id, lastTurn }, messages, response) {
    this.#write((db) => {
      const { lastInsertRowid: turn } = db.prepare('INSERT INTO turns (previous, messages) VALUES (?, ?)')
        .run(lastTurn, JSON.stringify(messages));
      db.prepare(UPSERT_SESSION).run(principal, id, slug, turn, response?.id ?? null);
      if (!response) return;
      db.prepare('INSERT INTO responses (principal, id, session_id, turn, body) VALUES (?, ?, ?, ?, ?)')
        .run(principal, response.id, id, turn, JSON.stringify(response));
      // Each principal has its own limit (SLUG-19). Sessions, turns and slugs stay (SLUG-05).
      db.prepare(EVICT_OLDEST).run(principal, this.keepResponses);
    });
  }

  /** Removes one response; the slug and the history of its session stay (SLUG-18). */
  deleteResponse(principal, id) {
    this.#write((db) => db.prepare('DELETE FROM responses WHERE principal = ? AND id = ?').run(principal, id));
  }

  #rows(sql, ...values) { return this.#attempt('read', (db) => db.prepare(sql).all(...values)); }

  #write(work) {
    this.#attempt('write', (db) => {
      db.exec('BEGIN IMMEDIATE');
      work(db);
      db.exec('COMMIT');
    });
  }

  /** Opens the file at first use and again after a failure: a store that has recovered is used again (HISTORY-07). */
  #attempt(kind, work) {
    try {
      if (this.faults[kind]) throw new Error(`fault control: ${kind}`);
      this.#db ??= open(this.path);
      return work(this.#db);
    } catch (error) {
      console.error('ERROR store:', error.message);
      this.#db?.close(); // also rolls back
      this.#db = null;
      throw new ApiError(503, 'history_unavailable', 'The history is unavailable.'); // HISTORY-05, HISTORY-14
    }
  }
}

function open(path) {
  const db = new DatabaseSync(path, { timeout: 2000 });
  // FULL: a commit is on the disk when it returns, so an answered turn survives SIGKILL and a power cut (DURABLE-02).
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${SCHEMA}`);
  return db;
}
