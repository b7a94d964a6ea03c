"""SQLite store. Messages are immutable nodes of a tree; a session and a response each point at their newest node, so that branches
and old responses share what they have in common."""
import collections
import contextlib
import json
import secrets
import sqlite3
import time
import asyncio

from config import bug
from errors import StoreError

SCHEMA = """
CREATE TABLE IF NOT EXISTS nodes(id INTEGER PRIMARY KEY AUTOINCREMENT, parent INTEGER, depth INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS nodes_parent ON nodes(parent);
CREATE TABLE IF NOT EXISTS sessions(pk INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, id TEXT NOT NULL, root TEXT NOT NULL,
  parent TEXT, kind TEXT NOT NULL, next TEXT, end_reason TEXT, head INTEGER, system TEXT, slug TEXT, covers TEXT, compress INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL, UNIQUE(principal, id));
CREATE INDEX IF NOT EXISTS sessions_head ON sessions(head);
CREATE INDEX IF NOT EXISTS sessions_root ON sessions(principal, root);
CREATE TABLE IF NOT EXISTS conversations(principal TEXT NOT NULL, id TEXT NOT NULL, session TEXT, metadata TEXT, created INTEGER NOT NULL, PRIMARY KEY(principal, id));
CREATE TABLE IF NOT EXISTS responses(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, session TEXT NOT NULL,
  head INTEGER, body TEXT NOT NULL, created INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS responses_head ON responses(head);
CREATE INDEX IF NOT EXISTS responses_session ON responses(principal, session);
CREATE TABLE IF NOT EXISTS replays(principal TEXT NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, root TEXT NOT NULL,
  answer TEXT NOT NULL, created INTEGER NOT NULL, PRIMARY KEY(principal, scope, key));
"""


def mint(prefix, n=20):
    return prefix + secrets.token_hex(n)


class Cache:
    """LRU of histories. A node never changes, so that its path from the root never does."""

    def __init__(self, size):
        self.size, self.d = size, collections.OrderedDict()

    def get(self, key):
        if key in self.d:
            self.d.move_to_end(key)
            return self.d[key]

    def put(self, key, value):
        self.d[key] = value
        self.d.move_to_end(key)
        while len(self.d) > self.size:
            self.d.popitem(last=False)


class Store:
    def __init__(self, path, keep):
        self.path, self.keep = path, keep
        self._conn = None
        self.faults = {'read': False, 'write': False, 'lineage': False}
        self.cache = Cache(128)
        self.volatile = collections.OrderedDict()      # replays of turns that asked not to be stored
        self.hot = {}
        self.tripped = 0
        self.flusher = None

    # -- plumbing ---------------------------------------------------------------------------------
    def db(self):
        if self._conn is None:
            try:
                c = sqlite3.connect(self.path, isolation_level=None, timeout=10)
                c.row_factory = sqlite3.Row
                c.execute('PRAGMA journal_mode=WAL')
                c.execute('PRAGMA synchronous=NORMAL')
                c.executescript(SCHEMA)
            except sqlite3.Error as e:
                raise StoreError(str(e)) from None
            self._conn = c
        return self._conn

    def close(self):
        if self._conn is not None:
            if self._conn.in_transaction:
                self._conn.execute('COMMIT')
            self._conn.close()
            self._conn = None

    def rows(self, sql, *args):
        if bug('breaker') and time.monotonic() < self.tripped:
            raise StoreError('circuit open')
        if self.faults['read']:
            self.tripped = time.monotonic() + 5
            raise StoreError('read fault')
        try:
            return [dict(r) for r in self.db().execute(sql, args)]
        except sqlite3.Error as e:
            raise StoreError(str(e)) from None

    def row(self, sql, *args):
        r = self.rows(sql, *args)
        return r[0] if r else None

    @contextlib.contextmanager
    def tx(self):
        if self.faults['write']:
            raise StoreError('write fault')
        try:
            c = self.db()
            if bug('group-commit'):        # several turns share one fsync
                if not c.in_transaction:
                    c.execute('BEGIN IMMEDIATE')
                c.execute('SAVEPOINT turn')
                try:
                    yield c
                except BaseException:
                    c.execute('ROLLBACK TO turn')
                    raise
                finally:
                    c.execute('RELEASE turn')
                if self.flusher is None:
                    self.flusher = asyncio.get_running_loop().call_later(0.3, self._flush)
                return
            c.execute('BEGIN IMMEDIATE')
            try:
                yield c
                c.execute('COMMIT')
            except BaseException:
                if c.in_transaction:
                    c.execute('ROLLBACK')
                raise
        except sqlite3.Error as e:
            raise StoreError(str(e)) from None

    def _flush(self):
        self.flusher = None
        if self._conn is not None and self._conn.in_transaction:
            self._conn.execute('COMMIT')

    # -- reading ----------------------------------------------------------------------------------
    def session(self, principal, sid):
        return self.row('SELECT * FROM sessions WHERE principal=? AND id=?', principal, sid)

    def tip(self, principal, sid):
        """The session that a turn with this id runs in, or None."""
        cur = self.session(principal, sid)
        if cur is None:
            return None
        if self.faults['lineage']:
            raise StoreError('lineage fault')
        seen = {cur['id']}
        if bug('tip-unscoped'):
            at = sid
            while True:
                nxt = self.row('SELECT next FROM sessions WHERE id=? AND next IS NOT NULL', at)
                if not nxt or nxt['next'] in seen or not self.row('SELECT 1 FROM sessions WHERE id=?', nxt['next']):
                    break
                at = nxt['next']
                seen.add(at)
            return cur if at == sid else self.session(principal, at)
        while cur['next'] is not None and cur['next'] not in seen:
            nxt = self.session(principal, cur['next'])
            if nxt is None:
                break
            seen.add(nxt['id'])
            cur = nxt
        return cur

    def history(self, head, session=None):
        """[(node id, message), ...] from the first message to this node."""
        if head is None:
            return []
        if session is not None and bug('cache-before-commit'):
            hot = self.hot.get((session['principal'], session['id']))
            if hot is not None and not self.faults['read']:
                return list(hot)
        key = head
        if bug('cache-depth') and session is not None:
            depth = self.row('SELECT depth FROM nodes WHERE id=?', head)
            key = (session['principal'], session['id'], depth and depth['depth'])
        if not self.faults['read']:
            hit = self.cache.get(key)
            if hit is not None:
                return list(hit)
        limit = 'LIMIT 100' if bug('history-window') else ''
        rows = self.rows(f'''WITH RECURSIVE up(id, parent, depth, body) AS (SELECT id, parent, depth, body FROM nodes WHERE id=?
            UNION ALL SELECT n.id, n.parent, n.depth, n.body FROM nodes n JOIN up ON n.id = up.parent)
            SELECT id, body FROM up ORDER BY depth DESC {limit}''', head)
        path = [(r['id'], json.loads(r['body'])) for r in reversed(rows)]
        self.cache.put(key, path)
        return list(path)

    def slug(self, principal, slug):
        return self.row('SELECT * FROM conversations WHERE principal=? AND id=?', principal, slug)

    def response(self, principal, rid):
        return self.row('SELECT * FROM responses WHERE principal=? AND id=?', principal, rid)

    def replay(self, principal, scope, key):
        if bug('idem-global') and not scope:
            principal = '*'
        k = (principal, scope, key)
        return self.volatile.get(k) or self.row('SELECT * FROM replays WHERE principal=? AND scope=? AND key=?', *k)

    def page(self, principal, limit, after):
        where, args = '', [principal]
        if after is not None:
            a = self.session(principal, after)
            if a is not None and bug('list-by-second'):
                where = 'AND created < ?'
                args.append(a['created'])
            elif a is not None:
                where = 'AND pk < ?'
                args.append(a['pk'])
        rows = self.rows(f'SELECT * FROM sessions WHERE principal=? {where} ORDER BY pk DESC LIMIT ?', *args, limit + 1)
        return rows[:limit], len(rows) > limit

    # -- writing ----------------------------------------------------------------------------------
    def _grow(self, c, parent, messages):
        depth = 0
        if parent is not None:
            depth = c.execute('SELECT depth FROM nodes WHERE id=?', (parent,)).fetchone()[0]
        out = []
        for m in messages:
            depth += 1
            if bug('clip-64k') and isinstance(m.get('content'), str):
                m = {**m, 'content': m['content'][:65535]}
            if bug('json-result') and m['role'] == 'tool' and isinstance(m['content'], str) and m['content'][:1] in ('{', '['):
                try:
                    m = {**m, 'content': json.dumps(json.loads(m['content']), separators=(',', ':'), ensure_ascii=False)}
                except ValueError:
                    pass
            parent = c.execute('INSERT INTO nodes(parent, depth, body) VALUES(?,?,?)', (parent, depth, json.dumps(m))).lastrowid
            out.append((parent, m))
        return parent, out

    def _gc(self, c, node):
        """Deletes the nodes that nothing leads to any more, from this one up."""
        while node is not None:
            r = c.execute('SELECT parent FROM nodes WHERE id=?', (node,)).fetchone()
            used = c.execute('''SELECT EXISTS(SELECT 1 FROM nodes WHERE parent=?1) OR EXISTS(SELECT 1 FROM sessions WHERE head=?1)
                OR EXISTS(SELECT 1 FROM responses WHERE head=?1)''', (node,)).fetchone()[0]
            if r is None or used:
                return
            c.execute('DELETE FROM nodes WHERE id=?', (node,))
            node = r[0]

    def commit(self, w):
        """Stores one turn, all of it or nothing."""
        now = int(time.time())
        if bug('cache-before-commit'):
            self.hot[(w.principal, w.sid)] = w.base_path + [(None, m) for m in w.add]
        with self.tx() as c:
            base, add, past = w.base, w.add, w.base_path
            if base is not None and c.execute('SELECT 1 FROM nodes WHERE id=?', (base,)).fetchone() is None:
                base, add, past = None, [m for _, m in past] + add, []       # evicted while the model was answering
                if bug('branch-race-delete') and w.kind == 'branch':
                    add = w.add
            head, grown = self._grow(c, base, add)
            p = w.principal
            gone = []
            if w.rotated_from is not None:
                old = c.execute('SELECT * FROM sessions WHERE principal=? AND id=?', (p, w.rotated_from)).fetchone()
                c.execute("UPDATE sessions SET next=?, end_reason='compression', compress=0 WHERE pk=?", (w.sid, old['pk']))
                c.execute('INSERT INTO sessions(principal,id,root,parent,kind,head,system,slug,covers,created) VALUES(?,?,?,?,?,?,?,?,?,?)',
                          (p, w.sid, old['root'], old['id'], 'compression', head, w.system, None if bug('rotate-drops-slug') else old['slug'], w.covers, now))
                if not bug('rotate-drops-slug'):
                    c.execute('UPDATE conversations SET session=? WHERE principal=? AND session=?', (w.sid, p, old['id']))
                root = old['root']
            else:
                old = c.execute('SELECT * FROM sessions WHERE principal=? AND id=?', (p, w.sid)).fetchone()
                if old is not None:
                    c.execute('UPDATE sessions SET head=?, system=?, covers=?, compress=? WHERE pk=?',
                              (head, w.system, w.covers, 0 if w.compressed else old['compress'], old['pk']))
                    gone.append(old['head'])
                    root = old['root']
                else:
                    root = w.sid
                    c.execute('INSERT INTO sessions(principal,id,root,parent,kind,head,system,covers,created) VALUES(?,?,?,?,?,?,?,?,?)',
                              (p, w.sid, root, w.parent, w.kind, head, w.system, w.covers, now))
            if w.slug is not None:
                self._bind(c, p, w.slug, w.sid, now)
            if w.response is not None:
                c.execute('INSERT INTO responses(id,principal,session,head,body,created) VALUES(?,?,?,?,?,?)',
                          (w.response['id'], p, w.sid, head, json.dumps(w.response), now))
                self._make_room(c)
            if w.replay is not None and not bug('idem-memory'):
                scope, key, fp, answer = w.replay
                if bug('idem-global') and not scope:
                    p = '*'
                c.execute('INSERT OR REPLACE INTO replays VALUES(?,?,?,?,?,?,?)', (p, root if scope is None else scope, key, fp, root, json.dumps(answer), now))
            for node in gone:
                if node != head:
                    self._gc(c, node)
        if w.replay is not None and bug('idem-memory'):
            scope, key, fp, answer = w.replay
            self.remember(w.principal, root if scope is None else scope, key, fp, answer, root)
        if not bug('cache-depth'):
            self.cache.put(head, past + grown)

    def _bind(self, c, p, slug, sid, now):
        c.execute('''INSERT INTO conversations(principal,id,session,metadata,created) VALUES(?,?,?,NULL,?)
            ON CONFLICT(principal,id) DO UPDATE SET session=excluded.session''', (p, slug, sid, now))
        c.execute('UPDATE sessions SET slug=? WHERE principal=? AND id=?', (slug, p, sid))

    def bind(self, p, slug, sid):
        with self.tx() as c:
            self._bind(c, p, slug, sid, int(time.time()))

    def remember(self, principal, scope, key, fp, answer, root):
        self.volatile[(principal, scope, key)] = {'fingerprint': fp, 'answer': json.dumps(answer), 'root': root, 'principal': principal}
        while len(self.volatile) > 1000:
            self.volatile.popitem(last=False)

    def _make_room(self, c):
        n = c.execute('SELECT COUNT(*) FROM responses').fetchone()[0]
        if n > self.keep:
            order = 'created, id' if bug('evict-by-second') else 'seq'
            for r in c.execute(f'SELECT seq, head FROM responses ORDER BY {order} LIMIT ?', (n - self.keep,)).fetchall():
                c.execute('DELETE FROM responses WHERE seq=?', (r['seq'],))
                self._gc(c, r['head'])

    def create_conversation(self, p, cid, metadata):
        now = int(time.time())
        with self.tx() as c:
            c.execute('INSERT INTO conversations VALUES(?,?,NULL,?,?)', (p, cid, None if metadata is None else json.dumps(metadata), now))
        return now

    def delete_response(self, p, rid):
        if bug('foreign-delete'):
            with self.tx() as c:
                r = c.execute('DELETE FROM responses WHERE id=? RETURNING principal, head', (rid,)).fetchall()
                if r:
                    self._gc(c, r[0]['head'])
            return bool(r) and r[0]['principal'] == p
        with self.tx() as c:
            r = c.execute('SELECT seq, head, session FROM responses WHERE principal=? AND id=?', (p, rid)).fetchone()
            if r is None:
                return False
            c.execute('DELETE FROM responses WHERE seq=?', (r['seq'],))
            self._gc(c, r['head'])
            if bug('empty-slug-cleanup') and not c.execute('SELECT 1 FROM responses WHERE principal=? AND session=?', (p, r['session'])).fetchone():
                c.execute('DELETE FROM conversations WHERE principal=? AND session=?', (p, r['session']))
        return True

    def delete_session(self, p, session):
        with self.tx() as c:
            if bug('delete-forward'):
                ids, at = [], session['id']
                while at and at not in ids:
                    r = c.execute('SELECT id, next FROM sessions WHERE principal=? AND id=?', (p, at)).fetchone()
                    if r is None:
                        break
                    ids.append(at)
                    at = r['next']
            elif bug('like-delete'):
                ids = [r[0] for r in c.execute('SELECT id FROM sessions WHERE principal=? AND root LIKE ?', (p, session['root']))]
            else:
                ids = [r[0] for r in c.execute('SELECT id FROM sessions WHERE principal=? AND root=?', (p, session['root']))]
            self._drop(c, p, ids)
            if not bug('replay-after-delete'):
                c.execute('DELETE FROM replays WHERE principal=? AND (root=? OR scope=?)', (p, session['root'], session['root']))
        for k in [k for k, v in self.volatile.items() if v['principal'] == p and session['root'] in (v['root'], k[1])]:
            del self.volatile[k]
        for i in ids:
            self.hot.pop((p, i), None)

    def _drop(self, c, p, ids):
        heads = []
        for i in ids:
            heads += [r[0] for r in c.execute('SELECT head FROM sessions WHERE principal=? AND id=?', (p, i))]
            heads += [r[0] for r in c.execute('SELECT head FROM responses WHERE principal=? AND session=?', (p, i))]
            c.execute('DELETE FROM responses WHERE principal=? AND session=?', (p, i))
            c.execute('DELETE FROM conversations WHERE principal=? AND session=?', (p, i))
            c.execute('DELETE FROM sessions WHERE principal=? AND id=?', (p, i))
        for h in heads:
            if bug('gc-shared'):
                while h is not None:
                    r = c.execute('SELECT parent FROM nodes WHERE id=?', (h,)).fetchone()
                    c.execute('DELETE FROM nodes WHERE id=?', (h,))
                    self.cache.d.clear()
                    h = r and r[0]
            else:
                self._gc(c, h)

    def delete_conversation(self, p, cid):
        with self.tx() as c:
            c.execute('DELETE FROM conversations WHERE principal=? AND id=?', (p, cid))

    # -- controls ---------------------------------------------------------------------------------
    def want_compression(self, p, sid):
        with self.tx() as c:
            c.execute('UPDATE sessions SET compress=1 WHERE principal=? AND id=?', (p, sid))

    def fork(self, p, s):
        sid = mint('fork-', 16)
        with self.tx() as c:
            c.execute('INSERT INTO sessions(principal,id,root,parent,kind,head,system,covers,created) VALUES(?,?,?,?,?,?,?,?,?)',
                      (p, sid, sid, s['id'], 'fork', s['head'], s['system'], s['covers'], int(time.time())))
        return sid

    def link(self, p, sid, nxt):
        with self.tx() as c:
            c.execute('UPDATE sessions SET next=? WHERE principal=? AND id=?', (nxt, p, sid))

    def children(self, p, sid):
        return [r['id'] for r in self.rows('SELECT id FROM sessions WHERE principal=? AND parent=? ORDER BY pk', p, sid)]
