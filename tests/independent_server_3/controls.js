'use strict';
// The control API: what a test may do to the server. It reads past the faults that it sets.

const { malformed, notFound } = require('./errors');
const { mintSession } = require('./ids');
const { isSessionId, isObject } = require('./validate');

function fields(body, names) {
  if (!isObject(body)) throw malformed(null, 'The body is not an object.');
  for (const name of Object.keys(body)) if (!names.includes(name)) throw malformed(name, `${name} is not a field of this control.`);
  for (const name of names) if (body[name] === undefined) throw malformed(name, `${name} is missing.`);
}

function sessionOf({ store, p, body }) {
  if (!isSessionId(body.session_id)) throw malformed('session_id', 'session_id is not a session id.');
  const session = store.space(p).sessions.get(body.session_id);
  if (!session) throw notFound('session', 'session_id');
  return session;
}

const CONTROLS = {
  async evict({ store, p, body }) {
    fields(body, ['response_id']);
    if (typeof body.response_id !== 'string' || body.response_id === '') throw malformed('response_id', 'response_id is not an id.');
    await store.commit({ p, evict: [[p, body.response_id]] });
    return { evicted: body.response_id };
  },

  async compress({ store, p, body }) {
    fields(body, ['session_id']);
    const tip = store.tip(p, sessionOf({ store, p, body }).id);
    await store.commit({ p, need: [tip.id, tip.uid], ops: [['sessions', tip.id, { ...tip, compress: true }]] });
    return { session_id: tip.id };
  },

  async fault({ store, body }) {
    fields(body, ['what', 'on']);
    if (!Object.hasOwn(store.faults, body.what)) throw malformed('what', 'what is read, write or lineage.');
    if (typeof body.on !== 'boolean') throw malformed('on', 'on is true or false.');
    store.faults[body.what] = body.on;
    return { what: body.what, on: body.on };
  },

  async fork({ store, p, body }) {
    fields(body, ['session_id']);
    const session = sessionOf({ store, p, body });
    const uid = store.next();
    const id = mintSession();
    const copy = {
      ...session, id, uid, at: Date.now() / 1000, parent: { id: session.id, uid: session.uid }, kind: 'fork', next: null, end: null, slug: null,
      line: uid, root: id, last: null, compress: false,
    };
    await store.commit({ p, ops: [['sessions', id, copy]] });
    return { session_id: id };
  },

  async link({ store, p, body }) {
    fields(body, ['session_id', 'next']);
    const session = sessionOf({ store, p, body });
    if (body.next !== null && !isSessionId(body.next)) throw malformed('next', 'next is a session id or null.');
    await store.commit({ p, need: [session.id, session.uid], ops: [['sessions', session.id, { ...session, next: body.next }]] });
    return { session_id: session.id, next: body.next };
  },

  async lineage({ store, p, body }) {
    fields(body, ['session_id']);
    const session = sessionOf({ store, p, body });
    return {
      session_id: session.id, parent_id: session.parent ? session.parent.id : null, end_reason: session.end,
      children: store.children(p, session).map((child) => child.id),
    };
  },
};

const runControl = (name) => (Object.hasOwn(CONTROLS, name) ? CONTROLS[name] : null);

module.exports = { runControl };
