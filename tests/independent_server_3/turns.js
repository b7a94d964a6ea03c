'use strict';
// One turn from request to answer: which session it runs in, what the model sees, and what is stored.

const { ApiError, StoreDown, unavailable, notFound } = require('./errors');
const { Locks } = require('./locks');
const { mint, mintSession, mintResponse } = require('./ids');
const { responseObject } = require('./answers');
const { chooseCompression, summarise } = require('./compression');
const { OWN_TOOLS, runOwn } = require('./environment');
const m = require('./messages');
const { given, isObject } = require('./validate');
const { defect } = require('./defects');

const MAX_ROUNDS = 8;
const FOR_MODEL = [
  'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'seed', 'stop', 'presence_penalty', 'frequency_penalty',
  'logit_bias', 'response_format', 'reasoning_effort', 'parallel_tool_calls',
];

class Turns {
  constructor(store, model, options) {
    this.store = store;
    this.model = model;
    this.options = options;
    this.locks = new Locks({ wait: options.turns === 'serialize' });
    this.reserved = new Map(); // new slugs whose first turn runs: principal and slug to {id, count}
    this.running = new Set();
  }

  // r: {p, kind, body, header, key, stream, controller, makeStream}. Gives {answer, replayed, degraded}.
  async run(r) {
    const hold = { locks: new Set(), controller: r.controller, slug: null };
    this.running.add(hold);
    const seen = { target: null };
    try {
      const told = await this.enter(r, hold, seen);
      if (told) return { answer: told, replayed: true };
      return await this.perform(r, seen.target, hold);
    } catch (error) {
      throw this.explain(error, r, seen.target);
    } finally {
      this.leave(r, hold);
      this.running.delete(hold);
    }
  }

  // Errors name the session too, as soon as it is known.
  explain(error, r, target) {
    if (!(error instanceof StoreDown)) {
      if (error instanceof ApiError && target) error.headers = { ...error.headers, [this.options.headers[0]]: target.called };
      return error;
    }
    const down = unavailable(error.message === 'write' ? 'The turn cannot be stored at the moment. Try again later.' : undefined);
    const derives = r.kind === 'chat' && this.options.derivation !== 'none';
    const id = target ? target.called : r.header || (derives ? this.derive(r) : null);
    if (id) down.headers = { [this.options.headers[0]]: id };
    return down;
  }

  leave(r, hold) {
    const free = () => {
      for (const key of [...hold.locks]) this.locks.release(key, hold);
    };
    if (defect('hang-up-keeps-session') && r.controller.signal.aborted && !r.stream) return;
    if (defect('released-late')) setTimeout(free, 150);
    else free();
    if (hold.slug !== null) {
      const entry = this.reserved.get(hold.slug);
      entry.count -= 1;
      if (entry.count === 0) this.reserved.delete(hold.slug);
      hold.slug = null;
    }
  }

  // Finds the session and waits for it. What the request names may mean another session when its turn has come.
  async enter(r, hold, seen) {
    let keyLock = null;
    let lock = null;
    for (;;) {
      const target = this.find(r);
      seen.target = target;
      this.reserve(r, target, hold);
      const wanted = this.replayKey(r, target);
      if (keyLock !== wanted) {
        for (const key of [...hold.locks]) this.locks.release(key, hold);
        lock = null;
        keyLock = wanted;
        if (wanted !== null && !defect('same-key-at-once')) await this.locks.acquire(`key ${wanted}`, hold, r.controller.signal);
        continue;
      }
      const told = target.degraded ? null : this.told(r, wanted);
      if (told) return told;
      if (target.lock === lock) return null;
      if (lock !== null) this.locks.release(lock, hold);
      lock = target.lock;
      if (lock === null) return null;
      await this.locks.acquire(lock, hold, r.controller.signal);
    }
  }

  reserve(r, target, hold) {
    if (target.bind === null || hold.slug !== null || defect('slug-race')) return;
    hold.slug = `${r.p}\n${target.bind}`;
    const entry = this.reserved.get(hold.slug) || { id: target.id, count: 0 };
    entry.count += 1;
    this.reserved.set(hold.slug, entry);
  }

  // ---- idempotency keys

  replayKey(r, target) {
    if (r.key === null) return null;
    const scope = defect('key-for-all-sessions') ? null : target.scope;
    return JSON.stringify([defect('key-for-all-principals') && scope === null ? '' : r.p, scope, r.key]);
  }

  fingerprint(r) {
    const body = defect('key-ignores-prompt') && r.body.messages
      ? { ...r.body, messages: r.body.messages.filter((message) => !m.isPrompt(message)) } : r.body;
    return m.sha256(JSON.stringify([r.kind, sorted(body)]));
  }

  told(r, wanted) {
    if (wanted === null) return null;
    const owner = defect('key-for-all-principals') ? JSON.parse(wanted)[0] : r.p;
    const replay = this.store.replay(owner, wanted);
    if (!replay) return null;
    if (replay.hash === this.fingerprint(r)) return replay.answer;
    throw new ApiError(409, 'idempotency_key_reused', 'This key was used with another body.', { param: 'Idempotency-Key' });
  }

  // ---- which session

  find(r) {
    try {
      return r.kind === 'chat' ? this.findChat(r) : this.findResponse(r);
    } catch (error) {
      if (defect('slug-fault-is-new') && error instanceof StoreDown && r.slug) return { ...this.fresh(), bind: r.slug };
      const lookup = r.kind === 'responses' && (r.slug !== null || given(r.body.previous_response_id));
      if (!(error instanceof StoreDown) || this.options.degraded === 'refuse' || lookup) throw error;
      const derived = r.kind === 'chat' && r.header === null && this.options.derivation !== 'none';
      const id = r.header || (derived ? this.derive(r) : mintSession());
      return { ...this.target(id, null), degraded: true, derived: r.kind === 'chat' && r.header === null, lock: null };
    }
  }

  derive(r) {
    return m.deriveId(r.body.messages, this.options.derivation, r.body.user);
  }

  findChat(r) {
    if (r.header !== null) return this.byId(r, r.header);
    if (this.options.derivation === 'none') return { ...this.fresh(), derived: true };
    return { ...this.byId(r, this.derive(r)), derived: true, scope: null };
  }

  findResponse(r) {
    const { header, slug } = r;
    const previous = given(r.body.previous_response_id) ? r.body.previous_response_id : null;
    if (previous !== null) return this.byResponse(r, previous, header);
    if (slug !== null) return this.bySlug(r, slug, header);
    if (header !== null) return this.byId(r, header);
    this.store.check();
    return this.fresh();
  }

  // What a turn needs to know of its session. `called` is the name that the client knows, `scope` that of its idempotency keys.
  target(id, session, called = id) {
    const root = session ? session.root : id;
    return {
      id, session, called: this.options.echo === 'alias' ? called : id, base: session ? session.head : null, parent: null, bind: null,
      scope: root, lock: null, derived: false, degraded: false, root,
    };
  }

  fresh() {
    return { ...this.target(mintSession(), null), scope: null };
  }

  byId(r, id) {
    const session = this.store.tip(r.p, id);
    const target = this.target(session ? session.id : id, session, id);
    target.lock = this.lockOf(r, target);
    return target;
  }

  lockOf(r, target) {
    if (defect('one-stream-at-a-time') && r.stream) return `stream ${r.p}`;
    return defect('lock-without-principal') ? `session ${target.root}` : `session ${r.p}\n${target.root}`;
  }

  conflict(message) {
    return new ApiError(409, 'session_conflict', message, { param: this.options.headers[0] });
  }

  byResponse(r, previous, header) {
    const response = this.store.response(r.p, previous);
    if (!response) throw notFound('previous_response', 'previous_response_id');
    const named = header === null ? null : this.store.tip(r.p, header);
    const tip = this.store.tip(r.p, response.session);
    if (header !== null && (!named || named.uid !== tip.uid)) {
      if (!defect('header-and-response-mixed') || !named) throw this.conflict('The header and previous_response_id name two sessions.');
      return { ...this.byId(r, header), base: response.node };
    }
    const isLast = defect('last-by-id') ? tip.last === previous : tip.head === response.node;
    if (isLast) {
      const target = this.target(tip.id, tip, header || tip.root);
      target.lock = this.lockOf(r, target);
      return target;
    }
    if (header !== null) throw this.conflict('previous_response_id is not the last response of the session that the header names.');
    const branch = this.fresh();
    branch.base = defect('branch-from-compressed') && tip.covers ? tip.head : response.node;
    branch.parent = { id: response.session, uid: response.uid };
    branch.scope = tip.root;
    if (defect('branch-takes-slug') && tip.slug) branch.bind = tip.slug;
    branch.system = tip.system;
    branch.scopeLine = tip.line;
    return branch;
  }

  bySlug(r, slug, header) {
    const bound = this.store.slug(r.p, slug);
    const named = header === null ? null : this.store.tip(r.p, header);
    if (bound) {
      const tip = this.store.tip(bound.p || r.p, bound.id);
      if (header !== null && (!named || named.uid !== tip.uid)) throw this.conflict('The header and conversation name two sessions.');
      const target = this.target(tip.id, tip, header || tip.root);
      target.slug = slug;
      target.lock = this.lockOf(r, target);
      return target;
    }
    const running = this.reserved.get(`${r.p}\n${slug}`);
    if (header !== null) {
      if (named && named.slug !== null && named.slug !== slug) throw this.conflict('The session of the header has another conversation.');
      if (running && running.id !== (named ? named.id : header)) throw this.conflict('The header and conversation name two sessions.');
      return { ...this.byId(r, header), bind: slug, given: true };
    }
    let id = running ? running.id : mintSession();
    if (defect('slug-is-session-id') && this.store.session(r.p, slug)) id = slug;
    return { ...this.byId(r, id), bind: slug, ...(defect('slug-race') ? { lock: null } : {}) };
  }

  // ---- the turn itself

  async perform(r, target, hold) {
    const turn = this.prepare(r, target);
    const { answer } = turn;
    if (target.slug && target.session && !(target.session.last && this.store.space(r.p).responses.has(target.session.last))) {
      console.log(`INFO conversation ${JSON.stringify(target.slug)} goes on in session ${target.id}; its last response is gone`);
    }
    const compression = turn.mayCompress ? chooseCompression(this.options, target.session, turn.before, turn.input) : null;
    if (compression) await this.compress(r, turn, compression);
    this.name(turn);
    if (r.stream) r.sink = r.makeStream(answer, turn.degraded);
    try {
      await this.callModel(r, turn);
      if (defect('finish-before-disk') && r.stream && r.kind === 'chat') r.sink.finishEarly();
      if (turn.stored) await this.save(r, turn);
      else await this.remember(r, turn);
    } catch (error) {
      await this.spoil(r, turn, error);
      throw error;
    }
    return { answer, degraded: turn.degraded };
  }

  prepare(r, target) {
    const { body } = r;
    const { session } = target;
    const store = r.kind === 'chat' || (defect('null-is-false') ? body.store === true || body.store === undefined : body.store !== false);
    const uid = session ? session.uid : this.store.next();
    const turn = {
      target, uid, line: session ? session.line : uid, stored: store && !target.degraded, degraded: target.degraded,
      covers: session ? session.covers : null, count: 0, summary: null, produced: [], files: new Map(), verbatim: null,
    };
    turn.mayCompress = !target.degraded && session !== null && (store || defect('unstored-turn-compresses'));
    if (r.kind === 'chat') Object.assign(turn, m.splitChat(body.messages));
    else Object.assign(turn, m.readInput(body.input, body.instructions));
    if (target.derived) this.prepareDerived(r, turn);
    else this.prepareStored(r, turn);
    turn.answer = this.newAnswer(r, turn);
    return turn;
  }

  prepareStored(r, turn) {
    const { target } = turn;
    const keptPrompt = target.session ? target.session.system : target.system;
    turn.given = turn.prompt;
    if (turn.prompt.length === 0 && keptPrompt && !defect('kept-prompt-not-sent')) turn.prompt = keptPrompt;
    if (defect('instructions-stay') && r.kind === 'responses' && given(r.body.previous_response_id) && turn.prompt.length === 0) {
      turn.prompt = (target.session && target.session.instructions) || [];
    }
    const nodes = target.degraded || target.base === null ? [] : this.store.chain(target.base);
    turn.before = nodes.map((node) => node.messages);
    if (defect('window-of-turns')) turn.before = turn.before.slice(-12);
    if (!m.resultsFit(turn.before.flat(), turn.input)) throw notFound('tool_call', r.kind === 'chat' ? 'messages' : 'input');
  }

  // Without the header, the body is the conversation. If it begins with what a summary stands for, the summary is sent instead.
  prepareDerived(r, turn) {
    const { covers } = turn;
    const head = covers ? turn.older.slice(0, covers.count) : [];
    const covered = covers !== null && head.length === covers.count && m.hashMessages('', head) === covers.hash;
    if (!m.resultsFit(turn.older, turn.rest)) throw notFound('tool_call', 'messages');
    turn.input = turn.rest;
    turn.body = turn.talk;
    turn.given = turn.prompt;
    if (covered) {
      const [node] = this.store.chain(turn.target.session.head);
      turn.count = covers.count;
      turn.summary = node.messages;
      turn.before = [node.messages, ...m.splitTurns(turn.older.slice(defect('summary-and-all') ? 0 : covers.count))];
    } else {
      turn.covers = null;
      turn.before = m.splitTurns(turn.older);
      turn.verbatim = r.body.messages;
    }
  }

  async compress(r, turn, { old, keep }) {
    const summary = await summarise(this.model, r.body.model, old, defect('summary-swallows-message') ? turn.input : [], r.controller.signal);
    if (summary === null) {
      if (defect('failed-summary-drops')) Object.assign(turn, { before: keep, verbatim: null, compressed: true, summary: [], covers: null });
      return;
    }
    const said = old.flat().slice(turn.covers ? 1 : 0); // the first of them is the older summary
    turn.covers = { count: (turn.covers ? turn.covers.count : 0) + said.length, hash: m.hashMessages(turn.covers ? turn.covers.hash : '', said) };
    turn.count = turn.covers.count;
    turn.summary = [summary];
    turn.before = [turn.summary, ...keep];
    turn.keep = keep;
    turn.verbatim = null;
    turn.compressed = true;
    if (defect('summary-swallows-message')) turn.shorten = true;
  }

  newAnswer(r, turn) {
    const { body } = r;
    const answer = {
      id: r.kind === 'chat' ? mint('chatcmpl-') : mintResponse(), kind: r.kind, created: Date.now() / 1000, model: body.model,
      rounds: [], calls: [], finish: null, usage: null, session: null, announce: false,
    };
    if (r.kind === 'chat') return answer;
    if (defect('client-names-response') && typeof body.id === 'string') answer.id = body.id;
    answer.previous = given(body.previous_response_id) ? body.previous_response_id : null;
    answer.conversation = r.slug;
    answer.echo = {
      instructions: given(body.instructions) ? body.instructions : null,
      max_output_tokens: given(body.max_output_tokens) ? body.max_output_tokens : null,
      metadata: body.metadata || {},
      parallel_tool_calls: body.parallel_tool_calls !== false,
      store: turn.stored,
      temperature: given(body.temperature) ? body.temperature : null,
      text: { format: { type: 'text' } },
      tool_choice: given(body.tool_choice) ? body.tool_choice : 'auto',
      tools: body.tools || [],
      top_p: given(body.top_p) ? body.top_p : null,
      truncation: 'disabled',
    };
    return answer;
  }

  // The name of the session in the answer. A rotation gives it a new one.
  name(turn) {
    const { target, answer } = turn;
    turn.rotated = Boolean(turn.compressed && this.options.compaction === 'rotate' && turn.stored);
    turn.sessionId = turn.rotated ? mintSession() : target.id;
    const id = this.options.echo === 'alias' ? target.called : turn.sessionId;
    answer.session = { id, degraded: turn.degraded, rotated_from: turn.rotated ? target.id : null };
    answer.announce = turn.rotated && this.options.echo === 'tip' && this.options.announces === 'event';
  }

  async callModel(r, turn) {
    const { answer } = turn;
    const tools = m.chatTools(r.body.tools);
    const names = new Set(tools.map((tool) => tool.function && tool.function.name));
    const own = this.options.environment === 'none' ? [] : OWN_TOOLS.filter((tool) => !names.has(tool.function.name));
    const request = { model: r.body.model, stream: r.stream };
    for (const field of FOR_MODEL) if (given(r.body[field])) request[field] = r.body[field];
    if (r.kind === 'responses' && given(r.body.max_output_tokens)) request.max_tokens = r.body.max_output_tokens;
    if (given(r.body.tool_choice)) request.tool_choice = m.chatChoice(r.body.tool_choice);
    if (tools.length + own.length > 0) request.tools = [...tools, ...own];
    if (r.stream && isObject(r.body.stream_options)) request.stream_options = r.body.stream_options;
    const lead = turn.verbatim || [...turn.prompt, ...turn.before.flat(), ...(turn.shorten ? [] : turn.input)];

    const paired = defect('compression-parts-tool-pair') && turn.compressed ? (messages) => messages : m.pairCalls;
    for (let n = 1; ; n += 1) {
      const round = { item: mint('msg_'), text: '' };
      answer.rounds.push(round);
      const onText = (text) => {
        round.text += text;
        r.sink.text(text, round);
      };
      const reply = await this.model.ask({ ...request, messages: paired([...lead, ...turn.produced]) }, { signal: r.controller.signal, onText });
      round.text = reply.text;
      if (r.sink) r.sink.endRound(round);
      this.addUsage(answer, reply.usage);
      const mine = reply.calls.filter((call) => own.some((tool) => tool.function.name === call.name));
      const theirs = reply.calls.filter((call) => !mine.includes(call));
      turn.produced.push(messageOf(reply));
      for (const call of mine) turn.produced.push({ role: 'tool', tool_call_id: call.id, content: runOwn(this.store, r.p, turn, call) });
      if (mine.length === 0 || theirs.length > 0 || reply.finish === 'length') {
        answer.calls = theirs.map((call) => ({ item: mint('fc_'), id: call.id, name: call.name, arguments: call.arguments }));
        answer.finish = theirs.length > 0 ? 'tool_calls' : reply.finish === 'tool_calls' ? 'stop' : reply.finish;
        return;
      }
      if (n === MAX_ROUNDS) throw new ApiError(502, 'upstream_error', 'The model did not come to an end with its tools.');
    }
  }

  addUsage(answer, usage) {
    if (!usage) return;
    const total = answer.usage || { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    for (const name of Object.keys(total)) total[name] += usage[name] || 0;
    answer.usage = total;
  }

  // ---- storing

  async save(r, turn) {
    if (defect('cut-off-answer-not-kept') && turn.answer.finish === 'length') return;
    if (defect('empty-answer-not-kept')) turn.produced = turn.produced.filter((message) => message.content !== '' || message.tool_calls);
    const ops = [];
    const head = this.addNodes(turn, ops);
    this.addSession(r, turn, ops, head);
    const { answer, target } = turn;
    if (r.kind === 'responses') {
      const object = responseObject(answer);
      if (defect('stream-stored-unfinished') && r.stream) Object.assign(object, { status: 'in_progress', output: [] });
      ops.push(['responses', answer.id, { object, node: head, session: turn.sessionId, uid: turn.sessionUid, line: turn.line }]);
    }
    const key = this.replayKey(r, target);
    if (key !== null && defect('key-for-all-principals')) this.store.put(JSON.parse(key)[0], 'replays', key, this.replayOf(r, turn));
    else if (key !== null && !defect('replays-lost-at-restart')) ops.push(['replays', key, this.replayOf(r, turn)]);
    else if (key !== null) this.remember(r, turn);
    for (const [name, file] of turn.files) ops.push(['files', name, file]);
    const transaction = { p: r.p, ops };
    if (target.session) transaction.need = [target.session.id, target.session.uid];
    if (await this.store.commit(transaction)) return;
    throw new ApiError(409, 'session_conflict', 'The session was deleted while this turn was running.');
  }

  replayOf(r, turn) {
    return { hash: this.fingerprint(r), answer: turn.answer, lines: [turn.line, turn.target.scopeLine || turn.line] };
  }

  // An answer that is not stored is told again as long as the process lives.
  remember(r, turn) {
    const key = this.replayKey(r, turn.target);
    if (key !== null && !turn.degraded) this.store.put(r.p, 'replays', key, this.replayOf(r, turn));
    if (defect('unstored-turn-compresses') && turn.compressed) {
      const { session } = turn.target;
      const ops = [];
      const head = this.addNodes({ ...turn, input: [], produced: [], before: turn.before.slice(0, -1), compressed: true }, ops, turn.before.at(-1));
      return this.store.commit({ p: r.p, ops: [...ops, ['sessions', session.id, { ...session, head, covers: turn.covers, compress: false }]] });
    }
    if (defect('unstored-turn-names-slug') && turn.target.bind !== null) {
      const ops = [];
      this.addSession(r, turn, ops, null);
      return this.store.commit({ p: r.p, ops });
    }
    return undefined;
  }

  addNodes(turn, ops, last = null) {
    const { target } = turn;
    let prev = null;
    const add = (messages, summary = false) => {
      const id = `n${this.store.next()}`;
      if (defect('images-not-kept')) messages = messages.map(withoutImages);
      if (defect('results-trimmed')) messages = messages.map((one) => (one.role === 'tool' && typeof one.content === 'string' ? { ...one, content: one.content.trim() } : one));
      ops.push(['nodes', id, summary ? { prev, messages, summary } : { prev, messages }]);
      prev = id;
      return id;
    };
    if (!target.derived) {
      if (!turn.compressed) prev = target.base;
      else for (const [index, messages] of turn.before.entries()) add(messages, index === 0);
      return add(last || [...turn.input, ...turn.produced], last !== null && turn.before.length === 0);
    }
    const body = turn.body.slice(turn.count);
    const nodes = target.session && !turn.compressed ? this.store.chain(target.session.head) : [];
    const stored = nodes.filter((node) => !node.summary).flatMap((node) => node.messages);
    const goesOn = nodes.length > 0 && Boolean(nodes[0].summary) === (turn.summary !== null) && m.sameMessages(stored, body.slice(0, stored.length));
    if (goesOn || (defect('edited-body-added') && target.session)) {
      prev = target.session.head;
      return add([...(goesOn ? body.slice(stored.length) : turn.input), ...turn.produced]);
    }
    if (turn.summary) add(turn.summary, true);
    const turns = m.splitTurns(body);
    turns[turns.length - 1].push(...turn.produced);
    for (const messages of turns) add(messages);
    return prev;
  }

  addSession(r, turn, ops, head) {
    const { target } = turn;
    const old = target.session;
    const slug = target.bind !== null ? target.bind : old ? old.slug : null;
    const session = old ? { ...old } : {
      uid: turn.uid, id: target.id, at: turn.answer.created, parent: target.parent, kind: target.parent ? 'branch' : 'session',
      next: null, end: null, line: turn.line, root: target.id, system: target.system || [], last: null,
    };
    Object.assign(session, { head, slug, covers: turn.covers });
    if (turn.compressed) session.compress = false;
    if (target.derived) session.system = turn.given;
    if (defect('header-prompt-kept') && turn.given.length > 0) session.system = turn.given;
    if (r.kind === 'responses') {
      session.last = turn.answer.id;
      if (defect('instructions-stay') && turn.given.length > 0) session.instructions = turn.given;
    }
    turn.sessionUid = session.uid;
    if (turn.rotated) {
      ops.push(['sessions', old.id, { ...old, next: turn.sessionId, end: 'compression', compress: false, slug }]);
      Object.assign(session, { uid: this.store.next(), id: turn.sessionId, at: turn.answer.created, parent: { id: old.id, uid: old.uid }, kind: 'compression' });
      if (defect('rotation-drops-slug')) session.slug = null;
      turn.sessionUid = session.uid;
    }
    ops.push(['sessions', session.id, session]);
    if (target.bind !== null) ops.push(['slugs', target.bind, { id: session.id, line: session.line, given: Boolean(target.given) }]);
  }

  // Mistakes that a failed turn can leave behind; only for tests.
  async spoil(r, turn, error) {
    const gone = r.controller.signal.aborted;
    const text = turn.answer.rounds.map((round) => round.text).join('');
    const half = defect('hang-up-stores-half') && gone && text !== '';
    const question = defect('failed-turn-keeps-question') && !gone && error.code === 'upstream_error';
    if (half || question) {
      turn.produced = half ? [{ role: 'assistant', content: text }] : [];
      const ops = [];
      const head = this.addNodes(turn, ops);
      this.addSession({ ...r, kind: 'chat' }, turn, ops, head);
      await this.store.commit({ p: r.p, ops });
    }
    if (defect('failed-response-kept') && r.kind === 'responses' && r.sink && r.sink.isOpen && turn.target.session) {
      const { answer, target } = turn;
      const object = { ...responseObject(answer, 'failed') };
      await this.store.commit({ p: r.p, ops: [['responses', answer.id, { object, node: target.base, session: target.id, uid: turn.uid, line: turn.line }]] });
    }
    if (defect('files-of-failed-turn') && turn.files.size > 0) await this.store.commit({ p: r.p, ops: [...turn.files].map(([name, file]) => ['files', name, file]) });
  }

  // ---- deletion

  async deleteSession(p, id) {
    const session = this.store.session(p, id);
    if (!session) return false;
    await this.store.commit({ p, wipe: session.line });
    if (!defect('delete-brings-back')) this.locks.free(`session ${p}\n${session.root}`);
    return true;
  }
}

function messageOf(reply) {
  const message = { role: 'assistant', content: reply.text === '' && reply.calls.length > 0 ? null : reply.text };
  if (reply.calls.length > 0) {
    message.tool_calls = reply.calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }));
  }
  return message;
}

function withoutImages(message) {
  if (!Array.isArray(message.content)) return message;
  return { ...message, content: message.content.map((part) => (part.type === 'image_url' ? { type: 'text', text: '(an image)' } : part)) };
}

// The same value with its keys in order, so that two copies of one body are one text.
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

module.exports = { Turns };
