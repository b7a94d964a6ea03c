'use strict';
// HTTP: keys, bodies, routes, CORS and the form of answers and errors.

const http = require('node:http');
const crypto = require('node:crypto');
const { ApiError, StoreDown, ClientGone, malformed, unavailable, notFound } = require('./errors');
const { chatObject, responseObject, ChatStream, ResponseStream } = require('./answers');
const { mintConversation } = require('./ids');
const { runControl } = require('./controls');
const v = require('./validate');
const { defect } = require('./defects');

const DRAIN_LIMIT = 256 * 1024 * 1024;
const digest = (bytes) => crypto.createHash('sha256').update(bytes).digest('base64');

class Server {
  constructor({ store, turns, model, options }) {
    Object.assign(this, { store, turns, model, options });
    this.keys = new Map(options.keys.map(([name, key]) => [digest(Buffer.from(key, 'utf8')), name]));
    this.routes = this.makeRoutes();
    this.http = http.createServer({ keepAliveTimeout: 75000, headersTimeout: 80000, requestTimeout: 300000, maxHeaderSize: 65536 }, (req, res) => this.handle(req, res));
    this.http.on('clientError', (error, socket) => this.refuseRaw(error, socket));
    this.http.on('connect', (req, socket) => this.refuseRaw({}, socket));
    this.open = 0;
  }

  makeRoutes() {
    const routes = {
      '/v1/chat/completions': { POST: this.chat },
      '/v1/responses': { POST: this.respond },
      '/v1/responses/{id}': { GET: this.getResponse, DELETE: this.deleteResponse },
      '/v1/conversations': { POST: this.createConversation },
      '/v1/conversations/{id}': { GET: this.getConversation, DELETE: this.deleteConversation },
      '/v1/sessions': { GET: this.listSessions },
      '/v1/sessions/{id}': { GET: this.getSession, DELETE: this.deleteSession },
      '/v1/sessions/{id}/messages': { GET: this.listMessages },
      '/v1/models': { GET: this.listModels },
      '/v1/capabilities': { GET: this.capabilities },
      '/health': { GET: this.health },
    };
    return Object.entries(routes).map(([path, methods]) => ({ path, methods, parts: path.split('/').slice(1) }));
  }

  // ---- one request

  async handle(req, res) {
    const exchange = { req, res, sink: null, origin: this.allowedOrigin(req) };
    this.open += 1;
    res.on('close', () => { this.open -= 1; });
    res.on('error', () => {});
    req.on('error', () => {});
    res.setHeader('x-request-id', crypto.randomUUID());
    try {
      await this.route(exchange);
    } catch (error) {
      this.fail(exchange, error);
    }
  }

  async route(x) {
    const { req, res } = x;
    const [rawPath, query = ''] = splitOnce(req.url, '?');
    const path = rawPath.replace(/^https?:\/\/[^/]*/i, '');
    this.addCors(x, path);
    if (req.method === 'OPTIONS' && this.options.origins.length > 0) {
      req.resume();
      res.writeHead(204);
      res.end();
      return;
    }
    const control = /^\/conformance\/v1\/([^/]*)$/.exec(path);
    x.query = query;
    if (defect('body-before-key') && req.method === 'POST') x.body = await this.readJson(x);
    if (path !== '/health' && req.method !== 'OPTIONS') x.p = this.principal(req);
    const found = this.match(path);
    if (control) {
      await this.control(x, control[1]);
      return;
    }
    if (!found) throw new ApiError(404, 'not_found', 'There is no such path.', { type: 'invalid_request_error' });
    const handler = found.methods[req.method];
    if (!handler) throw methodNotAllowed(Object.keys(found.methods), defect('allow-is-short') ? 1 : Infinity);
    this.guardBrowser(req, path);
    x.id = found.id;
    if (req.method === 'POST') x.body = x.body || await this.readJson(x);
    else req.resume();
    await handler.call(this, x);
  }

  match(path) {
    const parts = path.split('/').slice(1);
    for (const route of this.routes) {
      if (route.parts.length !== parts.length) continue;
      let id = null;
      const fits = route.parts.every((part, index) => {
        if (part !== '{id}') return part === parts[index];
        id = parts[index];
        return id !== '';
      });
      if (!fits) continue;
      try {
        id = id === null ? null : decodeURIComponent(id);
        if (id !== null && defect('path-decoded-twice')) id = decodeURIComponent(id);
      } catch {
        throw new ApiError(400, 'invalid_request', 'The path is not well encoded.');
      }
      return { ...route, id };
    }
    return null;
  }

  principal(req) {
    if (this.keys.size === 0) return 'local';
    const values = rawValues(req, 'authorization');
    const bearer = values.length === 1 ? /^bearer (.+)$/i.exec(values[0]) : null;
    let name = bearer ? this.keys.get(digest(Buffer.from(bearer[1], 'latin1'))) : undefined;
    if (name === undefined && bearer && defect('key-by-prefix')) {
      const match = this.options.keys.find(([, key]) => bearer[1].startsWith(key));
      name = match && match[0];
    }
    if (name === undefined) throw new ApiError(401, 'invalid_api_key', 'The key is missing or wrong.', { headers: { 'www-authenticate': 'Bearer' } });
    return name;
  }

  // Without keys, any web page that the user opens could send requests.
  guardBrowser(req, path) {
    if (this.keys.size > 0 || path === '/health') return;
    const host = (req.headers.host || '').replace(/:\d+$/, '').toLowerCase();
    if (!['localhost', '127.0.0.1', '[::1]'].includes(host)) throw new ApiError(403, 'host_not_allowed', 'This server answers to its local name only.');
    const { origin } = req.headers;
    if (origin !== undefined && !this.options.origins.includes(origin)) throw new ApiError(403, 'origin_not_allowed', 'This web page may not use this server.');
  }

  requireKey() {
    if (this.keys.size === 0 && !this.options.singleUser) throw new ApiError(403, 'session_requires_key', 'Continuing or reading a session needs a key.');
  }

  allowedOrigin(req) {
    const { origin } = req.headers;
    return origin !== undefined && this.options.origins.includes(origin) ? origin : null;
  }

  addCors(x) {
    const { res } = x;
    if (this.options.origins.length === 0) return;
    res.setHeader('vary', 'Origin');
    if (x.origin === null) return;
    const names = [...this.options.headers, 'X-Session-Degraded', 'Retry-After', 'X-Request-Id'];
    res.setHeader('access-control-allow-origin', x.origin);
    if (x.req.method !== 'OPTIONS') {
      res.setHeader('access-control-expose-headers', names.join(', '));
      return;
    }
    res.setHeader('access-control-allow-methods', 'GET, POST, DELETE');
    res.setHeader('access-control-allow-headers', ['Authorization', 'Content-Type', 'Idempotency-Key', ...this.options.headers].join(', '));
    res.setHeader('access-control-max-age', '600');
  }

  async readJson(x) {
    const bytes = await this.readBody(x);
    const type = x.req.headers['content-type'];
    if (type !== undefined && !isJsonType(type)) throw new ApiError(415, 'unsupported_media_type', 'The body has to be JSON in UTF-8.', { param: 'Content-Type' });
    return v.parseBody(bytes);
  }

  // Reads the body to its end even if it is too long, because a client reads the answer only after it has sent everything.
  readBody({ req }) {
    return new Promise((resolve, reject) => {
      const pieces = [];
      let size = 0;
      req.on('data', (piece) => {
        size += piece.length;
        if (size <= this.options.maxBody) pieces.push(piece);
        else pieces.length = 0;
        if (size > DRAIN_LIMIT) req.destroy();
      });
      req.on('end', () => {
        if (size > this.options.maxBody) reject(new ApiError(413, 'request_too_large', `The request is larger than ${this.options.maxBody} bytes.`));
        else resolve(Buffer.concat(pieces));
      });
      req.on('close', () => reject(new ClientGone()));
    });
  }

  // ---- answers

  send(x, status, body, headers = {}) {
    const bytes = Buffer.from(`${JSON.stringify(body)}\n`, 'utf8');
    x.res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', 'content-length': bytes.length, ...headers });
    x.res.end(bytes);
  }

  fail(x, error) {
    const { req, res } = x;
    if (error instanceof ClientGone) {
      res.destroy();
      return;
    }
    if (error instanceof StoreDown) error = unavailable();
    if (!(error instanceof ApiError)) {
      console.log(`ERROR ${error && error.stack}`);
      error = new ApiError(500, 'internal_error', 'The server has a defect.');
    }
    if (error.code === 'history_unavailable' && defect('error-shows-path')) error.message += ` (EIO: i/o error, open '${this.options.db}')`;
    if (x.sink && x.sink.isOpen) {
      x.sink.fail(error);
      return;
    }
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    req.resume();
    this.send(x, error.status, error.body(), error.headers);
  }

  refuseRaw(error, socket) {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const text = JSON.stringify(new ApiError(400, 'invalid_request', 'The request is not well-formed HTTP, or its head is too long.').body());
    socket.end(`HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`);
  }

  // ---- turns

  // The session id that the client sent, or null. The first declared header that has a value wins.
  sessionHeader(req) {
    let id = null;
    for (const name of defect('second-header-wins') ? [...this.options.headers].reverse() : this.options.headers) {
      const values = rawValues(req, name.toLowerCase());
      if (values.length > 1) throw invalidSessionId('The session id is sent twice.', name);
      if (values.length === 0 || (values[0] === '' && !defect('empty-header-refused'))) continue;
      if (!v.isSessionId(values[0])) throw invalidSessionId('A session id is 1 to 256 visible ASCII characters.', name);
      if (id === null) [id] = values;
    }
    return id;
  }

  async chat(x) {
    v.checkChat(x.body);
    const ends = x.body.messages.filter((message) => message.role !== 'system' && message.role !== 'developer');
    if (!ends.some((message) => message.role === 'user') && (ends.length === 0 || ends[ends.length - 1].role !== 'tool')) {
      throw new ApiError(400, 'invalid_request', 'messages has neither a user message nor results at its end.', { param: 'messages' });
    }
    await this.turn(x, 'chat');
  }

  async respond(x) {
    v.checkResponse(x.body);
    await this.turn(x, 'responses');
  }

  async turn(x, kind) {
    const { req, res, body } = x;
    const header = this.sessionHeader(req);
    const known = this.keys.size > 0 || this.options.singleUser; // nobody else can come with the same key
    const [key = ''] = known ? rawValues(req, 'idempotency-key') : [];
    if ([...key].length > 256) throw malformed('Idempotency-Key', 'The key is longer than 256 characters.');
    const slug = kind === 'responses' ? v.slugOf(body) : null;
    if (header !== null || slug !== null || (kind === 'responses' && v.given(body.previous_response_id))) this.requireKey();
    const controller = new AbortController();
    res.on('close', () => { if (!res.writableFinished) controller.abort(new ClientGone()); });
    const r = {
      p: x.p, kind, body, header, slug, controller, key: key === '' ? null : key, stream: body.stream === true,
      makeStream: (answer, degraded) => this.makeStream(x, r, answer, degraded),
    };
    const result = await this.turns.run(r);
    if (r.stream) {
      if (result.replayed) this.makeStream(x, r, result.answer, false, true).replay();
      else x.sink.finish();
      return;
    }
    const headers = this.turnHeaders(result.answer, result.degraded, result.replayed);
    this.send(x, 200, kind === 'chat' ? chatObject(result.answer) : responseObject(result.answer), headers);
  }

  turnHeaders(answer, degraded, replayed) {
    const headers = { [this.options.headers[0]]: (defect('rotation-header-old') && answer.session.rotated_from) || answer.session.id };
    if (degraded && !defect('degraded-not-marked')) headers['x-session-degraded'] = 'history-unavailable';
    if (replayed) headers['idempotency-replayed'] = 'true';
    return headers;
  }

  makeStream(x, r, answer, degraded, replayed = false) {
    const head = () => {
      if (defect('stream-not-exposed')) x.res.removeHeader('access-control-expose-headers');
      x.res.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no', ...this.turnHeaders(answer, degraded, replayed),
      });
      return x.res;
    };
    const usage = Boolean(r.body.stream_options && r.body.stream_options.include_usage);
    const Kind = r.kind === 'chat' ? ChatStream : ResponseStream;
    x.sink = new Kind(answer, { usage, head });
    return x.sink;
  }

  // ---- stored responses and conversations

  storedResponse(x) {
    this.requireKey();
    const response = this.store.response(x.p, x.id);
    if (!response || response.hidden) {
      const foreign = defect('foreign-response-differs') && [...this.store.spaces.values()].some((space) => space.responses.has(x.id));
      throw new ApiError(404, 'response_not_found', foreign ? 'This response belongs to somebody else.' : 'There is no such response.', { param: 'response_id', type: 'invalid_request_error' });
    }
    return response;
  }

  async getResponse(x) {
    this.send(x, 200, this.storedResponse(x).object);
  }

  async deleteResponse(x) {
    const response = this.storedResponse(x);
    const ops = [['responses', x.id, defect('deleted-response-continues') ? { ...response, hidden: true } : null]];
    if (defect('delete-response-takes-slug')) {
      const session = this.store.session(x.p, response.session);
      if (session && session.slug && session.last === x.id) ops.push(['slugs', session.slug, null]);
    }
    await this.store.commit({ p: x.p, ops });
    this.send(x, 200, { deleted: true, id: x.id, object: 'response.deleted' });
  }

  async createConversation(x) {
    v.checkConversation(x.body);
    this.requireKey();
    this.store.check();
    const conversation = { id: mintConversation(), object: 'conversation', metadata: x.body.metadata || {}, created_at: Math.floor(Date.now() / 1000) };
    await this.store.commit({ p: x.p, ops: [['conversations', conversation.id, conversation]] });
    this.send(x, 200, conversation);
  }

  storedConversation(x) {
    this.requireKey();
    const conversation = this.store.conversation(x.p, x.id);
    if (!conversation) throw notFound('conversation', 'conversation_id');
    return conversation;
  }

  async getConversation(x) {
    this.send(x, 200, this.storedConversation(x));
  }

  async deleteConversation(x) {
    this.storedConversation(x);
    const slug = this.store.slug(x.p, x.id);
    if (slug && !defect('conversation-leaves-session')) await this.turns.deleteSession(x.p, slug.id);
    else await this.store.commit({ p: x.p, ops: [['conversations', x.id, null], ['slugs', x.id, null]] });
    this.send(x, 200, { deleted: true, id: x.id, object: 'conversation.deleted' });
  }

  // ---- sessions

  storedSession(x) {
    this.requireKey();
    const session = this.store.session(x.p, x.id);
    if (!session) throw notFound('session', 'session_id');
    return session;
  }

  showSession(p, session) {
    return {
      object: 'session', id: session.id, conversation: session.slug, created_at: session.at, end_reason: session.end,
      parent_id: session.parent ? session.parent.id : null, tip_id: this.store.tip(p, session.id).id, origin: session.kind,
    };
  }

  async listSessions(x) {
    this.requireKey();
    const query = new URLSearchParams(x.query);
    const limits = query.getAll('limit');
    const afters = query.getAll('after');
    if (limits.length > 1 || (limits.length === 1 && !/^0*([1-9][0-9]?|100)$/.test(limits[0]))) throw malformed('limit', 'limit is a number from 1 to 100.');
    if (afters.length > 1 || (afters.length === 1 && !v.isSessionId(afters[0]))) throw malformed('after', 'after is the id of a session.');
    const limit = limits.length === 1 ? Number(limits[0]) : 20;
    let list = this.store.sessions(x.p);
    if (defect('list-by-id')) list = list.sort((a, b) => (a.id < b.id ? 1 : -1));
    if (afters.length === 1) {
      let at = list.findIndex((session) => session.id === afters[0]);
      if (at < 0 && defect('foreign-cursor')) {
        const foreign = [...this.store.spaces.values()].map((space) => space.sessions.get(afters[0])).find(Boolean);
        if (foreign) at = list.findLastIndex((session) => session.uid > foreign.uid);
        if (foreign && at < 0) at = -1;
        else if (!foreign) throw notFound('session', 'after');
      } else if (at < 0) throw notFound('session', 'after');
      if (defect('cursor-by-second')) {
        const second = Math.floor(list[at].at);
        list = list.filter((session) => Math.floor(session.at) < second);
      } else list = list.slice(at + 1);
    }
    const data = list.slice(0, limit).map((session) => this.showSession(x.p, session));
    this.send(x, 200, { object: 'list', data, has_more: list.length > limit });
  }

  async getSession(x) {
    this.send(x, 200, this.showSession(x.p, this.storedSession(x)));
  }

  async listMessages(x) {
    const session = this.storedSession(x);
    const messages = [...session.system, ...this.store.chain(session.head).flatMap((node) => node.messages)];
    this.send(x, 200, { object: 'list', has_more: false, data: messages.map((message) => ({ content: null, ...message })) });
  }

  async deleteSession(x) {
    this.storedSession(x);
    await this.turns.deleteSession(x.p, x.id);
    this.send(x, 200, { deleted: true, id: x.id, object: 'session.deleted' });
  }

  // ---- discovery

  async listModels(x) {
    this.send(x, 200, { object: 'list', data: await this.model.models() });
  }

  async capabilities(x) {
    const { options } = this;
    const offers = ['chat', 'responses', 'stored-responses', 'conversations', 'streaming', 'compression', 'idempotency', 'sessions', 'client-tools'];
    if (new Set(this.keys.values()).size > 1) offers.push('tenants');
    if (options.origins.length > 0) offers.push('cors');
    const { derivation, compaction, echo, degraded, turns, environment, announces } = options;
    this.send(x, 200, {
      object: 'capabilities',
      continuity: {
        header: options.headers[0], headers: options.headers, release: '1.0', single_user: options.singleUser, controls: options.controlToken !== null, offers,
        options: { announces, compaction, degraded, derivation, echo, environment, tells: 'header', turns },
      },
    });
  }

  async health(x) {
    this.send(x, 200, { status: 'ok', uptime_seconds: Math.floor(process.uptime()) });
  }

  // ---- controls

  async control(x, name) {
    const token = x.req.headers['x-conformance-token'];
    const { controlToken } = this.options;
    const right = controlToken !== null && typeof token === 'string' && digest(Buffer.from(token, 'latin1')) === digest(Buffer.from(controlToken, 'utf8'));
    const local = ['127.0.0.1', '::1', '::ffff:127.0.0.1'].includes(x.req.socket.remoteAddress);
    const run = right && local ? runControl(name) : null;
    if (!run) throw new ApiError(404, 'not_found', 'There is no such path.', { type: 'invalid_request_error' });
    if (x.req.method !== 'POST') throw methodNotAllowed(['POST']);
    x.body = x.body || await this.readJson(x);
    this.send(x, 200, await run({ store: this.store, p: x.p, body: x.body }));
  }
}

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

// All values of a header as they were sent; HTTP libraries join repeated ones.
function rawValues(req, name) {
  const values = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2) if (req.rawHeaders[i].toLowerCase() === name) values.push(req.rawHeaders[i + 1].replace(/^[ \t]+|[ \t]+$/g, ''));
  return values;
}

function isJsonType(value) {
  const [type, ...parameters] = value.split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((part) => part.startsWith('charset='));
  return /^application\/([a-z0-9.+-]+\+)?json$/.test(type) && (!charset || /^charset="?utf-?8"?$/.test(charset));
}

const invalidSessionId = (message, param) => new ApiError(400, 'invalid_session_id', message, { param });
const methodNotAllowed = (methods, count = Infinity) =>
  new ApiError(405, 'method_not_allowed', `This path takes ${methods.join(' and ')}.`, { headers: { allow: methods.slice(0, count).join(', ') } });

module.exports = { Server };
