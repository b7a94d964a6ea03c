'use strict';
// Everything that is kept. Each principal has a space of its own, and nothing is looked up without it. All changes are
// transactions: they go through the journal first and are then applied here, in the same way after a restart.
//
// The history of a session is a chain of nodes, one for each turn, and a node never changes. A session points to its newest
// node and a response to the node of its turn, so a branch is a session that begins at the node of an older response.

const { Journal } = require('./journal');
const { StoreDown } = require('./errors');
const { defect } = require('./defects');

const TABLES = ['sessions', 'slugs', 'responses', 'conversations', 'replays', 'files'];
const MAX_REPLAYS = 5000;

class Store {
  constructor(file, { keepResponses = 1000 } = {}) {
    this.spaces = new Map();
    this.nodes = new Map();
    this.age = new Map(); // all responses, the oldest first
    this.planned = new Set(); // responses that a transaction on its way evicts
    this.adding = 0; // responses on their way
    this.seq = 0;
    this.limit = keepResponses;
    this.faults = { read: false, write: false, lineage: false };
    this.journal = new Journal(file, (transaction, again) => this.apply(transaction, again));
    this.opened = false;
  }

  open() {
    if (this.opened) return;
    for (const map of [this.spaces, this.nodes, this.age]) map.clear();
    this.journal.open();
    this.opened = true;
    let live = 0;
    for (const space of this.spaces.values()) for (const table of TABLES) live += space[table].size;
    if (this.journal.records > 1000 && this.journal.records > 4 * live) this.journal.rewrite(this.dump());
  }

  next() {
    this.seq += 1;
    return this.seq;
  }

  space(principal) {
    let space = this.spaces.get(principal);
    if (!space) {
      space = Object.fromEntries(TABLES.map((table) => [table, new Map()]));
      this.spaces.set(principal, space);
    }
    return space;
  }

  // ---- writing

  // A transaction: {p, need: [session id, uid], ops: [[table, key, value]], wipe: line, evict: [[p, response id]]}. Null deletes.
  // It changes nothing if the session that it needs is gone; then the answer is false.
  apply(t, again = false) {
    const space = this.space(t.p);
    this.seq = Math.max(this.seq, t.seq || 0);
    if (t.need) {
      const session = space.sessions.get(t.need[0]);
      if (!session || session.uid !== t.need[1]) {
        if (!defect('delete-brings-back')) return false;
      }
    }
    for (const [table, key, value] of t.ops || []) {
      if (again && this.lostAtRestart(table, key, value)) continue;
      if (table === 'nodes') this.nodes.set(key, value);
      else if (value === null) this.remove(t.p, table, key);
      else this.put(t.p, table, key, value, again);
    }
    for (const [principal, id] of t.evict || []) this.evictNow(principal, id);
    if (t.wipe) this.wipe(t.p, t.wipe);
    return true;
  }

  put(p, table, key, value, again) {
    const map = this.space(p)[table];
    map.set(key, value);
    if (table === 'responses') this.age.set(`${p}\n${key}`, [p, key]);
    if (table === 'replays' && map.size > MAX_REPLAYS) map.delete(map.keys().next().value);
    if (defect('restart-mixes-slugs') && again && table === 'slugs') {
      for (const other of this.spaces.values()) if (other !== this.space(p)) other.slugs.set(key, { ...value, p });
    }
  }

  remove(p, table, key) {
    this.space(p)[table].delete(key);
    if (table === 'responses') this.age.delete(`${p}\n${key}`);
  }

  evictNow(p, id) {
    const response = this.space(p).responses.get(id);
    if (response && defect('cache-loses-slug')) {
      for (const [name, slug] of this.space(p).slugs) {
        const session = this.space(p).sessions.get(slug.id);
        if (session && session.last === id) this.remove(p, 'slugs', name);
      }
    }
    if (response && defect('evict-cuts-history')) {
      const node = this.nodes.get(response.node);
      if (node) this.nodes.set(response.node, { ...node, messages: [] });
    }
    this.remove(p, 'responses', id);
    this.planned.delete(`${p}\n${id}`);
  }

  // A whole conversation: all sessions of a line and what belongs to them.
  wipe(p, line) {
    const space = this.space(p);
    const lines = new Set([line]);
    if (defect('delete-takes-branches')) {
      for (const session of space.sessions.values()) {
        const parent = session.parent && space.sessions.get(session.parent.id);
        if (parent && lines.has(parent.line)) lines.add(session.line);
      }
    }
    for (const [name, slug] of space.slugs) {
      if (!lines.has(slug.line)) continue;
      space.slugs.delete(name);
      space.conversations.delete(name);
    }
    for (const [id, session] of space.sessions) if (lines.has(session.line)) space.sessions.delete(id);
    if (!defect('delete-leaves-responses')) {
      for (const [id, response] of space.responses) if (lines.has(response.line)) this.remove(p, 'responses', id);
    }
    if (!defect('delete-leaves-replays')) {
      for (const [key, replay] of space.replays) if (replay.lines.some((one) => lines.has(one))) space.replays.delete(key);
    }
    for (const [key, file] of space.files) if (lines.has(file.line)) space.files.delete(key);
  }

  lostAtRestart(table, key, value) {
    if (value === null) return false;
    if (table === 'slugs' && defect('restart-loses-bound-slug')) return value.given;
    if (table === 'files' && defect('files-lost-at-restart')) return true;
    if (table === 'replays' && defect('replays-lost-at-restart')) return true;
    if (table === 'nodes' && value.summary && defect('restart-loses-summary')) {
      this.nodes.set(key, { ...value, messages: [] });
      return true;
    }
    if (table === 'nodes' && defect('restart-normalises-text')) {
      this.nodes.set(key, JSON.parse(JSON.stringify(value).normalize('NFC')));
      return true;
    }
    return false;
  }

  async commit(transaction) {
    const response = transaction.ops ? transaction.ops.find(([table, , value]) => table === 'responses' && value !== null) : null;
    this.checkWrite(transaction);
    if (response) {
      transaction.evict = this.surplus();
      this.adding += 1;
    }
    transaction.seq = this.seq;
    try {
      return await this.journal.append(transaction);
    } finally {
      if (response) {
        this.adding -= 1;
        for (const [p, id] of transaction.evict) this.planned.delete(`${p}\n${id}`);
      }
    }
  }

  checkWrite(transaction) {
    if (this.faults.write || !this.opened) {
      if (defect('failed-write-stays-in-memory') && this.opened && transaction) this.apply(transaction);
      throw new StoreDown('write');
    }
  }

  // The oldest responses, as many as are too many once the next one is there.
  surplus() {
    let count = this.age.size + this.adding + 1 - this.planned.size - this.limit;
    const evicted = [];
    for (const [key, entry] of this.age) {
      if (count <= 0) break;
      if (this.planned.has(key)) continue;
      this.planned.add(key);
      evicted.push(entry);
      count -= 1;
    }
    return evicted;
  }

  // The whole content as transactions, for a new file.
  * dump() {
    const kept = new Set();
    for (const space of this.spaces.values()) {
      for (const owner of [...space.sessions.values(), ...space.responses.values()]) {
        for (let id = owner.head || owner.node; id && !kept.has(id); id = this.nodes.get(id).prev) kept.add(id);
      }
    }
    for (const id of [...this.nodes.keys()]) if (!kept.has(id)) this.nodes.delete(id);
    for (const [id, node] of this.nodes) yield { p: '', seq: this.seq, ops: [['nodes', id, node]] };
    for (const [p, space] of this.spaces) {
      for (const table of TABLES) {
        if (table !== 'responses') for (const [key, value] of space[table]) yield { p, ops: [[table, key, value]] };
      }
    }
    for (const [p, id] of this.age.values()) yield { p, ops: [['responses', id, this.spaces.get(p).responses.get(id)]] };
  }

  // ---- reading

  check() {
    if (!this.opened) {
      try {
        this.open();
      } catch (error) {
        console.log(`ERROR the store cannot be opened: ${error.code || error.message}`);
      }
    }
    if (this.faults.read || !this.opened) throw new StoreDown('read');
  }

  session(p, id) {
    this.check();
    return this.space(p).sessions.get(id) || null;
  }

  // The last session of the chain that begins at this one: chapter 4.5.
  tip(p, id) {
    this.check();
    if (this.faults.lineage) throw new StoreDown('lineage');
    const sessions = this.space(p).sessions;
    let here = sessions.get(id);
    if (!here) return null;
    const seen = new Set([here.id]);
    for (;;) {
      let next = here.next !== null && !seen.has(here.next) ? sessions.get(here.next) : null;
      if (!next && defect('tip-follows-any-child')) {
        next = [...sessions.values()].find((child) => child.parent && child.parent.uid === here.uid && !seen.has(child.id));
      }
      if (!next) return here;
      here = next;
      seen.add(here.id);
      if (defect('tip-one-step')) return here;
    }
  }

  children(p, session) {
    return [...this.space(p).sessions.values()].filter((child) => child.parent && child.parent.uid === session.uid);
  }

  sessions(p) {
    this.check();
    return [...this.space(p).sessions.values()].sort((a, b) => b.uid - a.uid);
  }

  slug(p, name) {
    this.check();
    if (defect('slug-in-plain-object') && name in {}) return Object.prototype[name];
    return this.space(p).slugs.get(name) || null;
  }

  response(p, id) {
    this.check();
    return this.space(p).responses.get(id) || null;
  }

  conversation(p, id) {
    this.check();
    return this.space(p).conversations.get(id) || null;
  }

  replay(p, key) {
    this.check();
    return this.space(p).replays.get(key) || null;
  }

  file(p, key) {
    this.check();
    const file = this.space(p).files.get(key);
    return file ? file.content : null;
  }

  // The nodes of a history, the oldest first.
  chain(head) {
    this.check();
    const nodes = [];
    for (let id = head; id; id = this.nodes.get(id).prev) nodes.push(this.nodes.get(id));
    return nodes.reverse();
  }

  close() {
    return this.journal.close();
  }
}

module.exports = { Store };
