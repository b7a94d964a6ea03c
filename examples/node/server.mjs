// A small server that keeps conversations: Session Continuity 1.0. This file is the HTTP side: keys, routes, bodies.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { Answer, ApiError, CONTINUITY_HEADER, chatFormat, isObject, responseFormat } from './formats.mjs';
import { Store } from './store.mjs';
import { runTurn } from './turns.mjs';

const MAX_BODY_BYTES = 16 * 1024 * 1024;
const text = (value) => ({ type: 'string', default: value });
const { values: options } = parseArgs({
  options: {
    port: text('8080'), db: text('conversations.db'), model: text('http://127.0.0.1:8000/v1'),
    key: { ...text([]), multiple: true }, 'keep-responses': text('1000'),
    'idle-seconds': text('65'), // how long a connection stays open without a request
    'control-token': text(''), // turns on the control API of chapter 5
  },
});

const digest = (secret) => createHash('sha256').update(secret).digest('hex');

// NAME=SECRET. Keys are looked up by digest, so that the time that it takes tells nothing about them.
const principals = new Map(options.key.map((key) => key.split(/=(.*)/s)).map(([name, key]) => [digest(key), name]));
const store = new Store(options.db, Number(options['keep-responses']));

async function handle(req, res) {
  res.setHeader('Cache-Control', 'no-store'); // ISOLATE-11
  try {
    const [path] = req.url.split('?');
    const principal = path === '/health' ? null : authenticate(req); // before anything is read (ISOLATE-01)
    const route = `${req.method} ${path}`;
    const [pattern, action] = ROUTES.find(([candidate]) => candidate.test(route)) ?? [];
    if (!pattern) throw nothingHere();
    const body = await action({ req, res, principal, id: pattern.exec(route)[1] });
    if (body) sendJson(res, 200, body);
  } catch (error) {
    if (res.destroyed) return; // the client hung up; nobody is there to be told
    const { status, body } = presentable(error);
    sendJson(res, status, body);
  }
}

function authenticate(req) {
  const secret = /^Bearer (.+)$/s.exec(req.headers.authorization ?? '')?.[1] ?? '';
  const principal = principals.get(digest(Buffer.from(secret, 'latin1'))); // which is how Node reads a header's bytes
  if (principal === undefined) throw new ApiError(401, 'invalid_api_key', 'The key is missing or wrong.');
  return principal;
}

/** Whatever went wrong, as an error that may be shown. Only the log learns what a defect was. */
function presentable(error) {
  if (error instanceof ApiError) return error;
  console.error('ERROR', error);
  return new ApiError(500, 'internal_error', 'The server has a defect.');
}

const nothingHere = () => new ApiError(404, 'not_found', 'There is nothing here.');

function sendJson(res, status, body) {
  res.writeHead(status, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(body));
}

/** The session id of the continuity header, or null. */
function headerSessionId(req) {
  const values = req.headersDistinct[CONTINUITY_HEADER.toLowerCase()] ?? []; // not joined if it was sent twice (4.2)
  const id = values[0]?.replace(/^[ \t]+|[ \t]+$/g, '') ?? '';
  // Visible ASCII, as in the OpenAPI document: every other id is refused, and none is changed (ISOLATE-03, -04).
  if (values.length <= 1 && /^[!-~]{0,256}$/.test(id)) return id || null; // an empty value is no header (ECHO-04)
  const message = 'A session id has 1 to 256 visible ASCII characters and is sent once.';
  throw new ApiError(400, 'invalid_session_id', message, CONTINUITY_HEADER);
}

async function readJson(req) {
  const chunks = [];
  let size = 0;
  for await (const chunk of req) { // to its end, even if too large: else the client sees only a reset (4.11)
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (size > MAX_BODY_BYTES) throw new ApiError(413, 'request_too_large', 'The request is too large.');
  try {
    const body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
    if (isObject(body) && isSound(body)) return body;
  } catch { /* refused like a body that is no object */ }
  throw new ApiError(400, 'invalid_json', 'The body is not a JSON object in UTF-8, or is nested too deeply.');
}

/** Whether the value can be stored and sent again: no lone surrogates (4.11), not too deep (CONTRACT-07). */
function isSound(value, depth = 0) {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return depth < 100
    && Object.entries(value).every(([name, inner]) => name.isWellFormed() && isSound(inner, depth + 1));
}

async function runAndAnswer(format, { req, res, principal }) {
  const turn = format.toTurn(principal, headerSessionId(req), await readJson(req));
  const hangUp = new AbortController();
  res.on('close', () => hangUp.abort());
  const answer = new Answer(format, res, turn);
  try {
    const body = await runTurn(store, options.model, turn, answer, hangUp.signal);
    if (turn.request.stream) answer.finish(body);
    else sendJson(res, 200, body);
  } catch (error) {
    if (!res.headersSent || res.destroyed) throw error;
    answer.fail(presentable(error)); // the status is sent already, so the failure is an event (STREAM-02)
  }
}

function getResponse({ principal, id }) {
  const response = store.response(principal, id);
  if (!response) throw new ApiError(404, 'response_not_found', 'There is no such response.', 'response_id');
  return JSON.parse(response.body);
}

function deleteResponse({ principal, id }) {
  getResponse({ principal, id }); // 404 if there is none
  store.deleteResponse(principal, id);
  return { id, object: 'response', deleted: true };
}

const CAPABILITIES = {
  release: '1.0', header: CONTINUITY_HEADER, single_user: false, controls: options['control-token'] !== '',
  options: {
    derivation: 'none', degraded: 'refuse', turns: 'serialize', environment: 'none', tells: 'header',
    compaction: 'in-place', echo: 'tip', // required, though nothing is ever compressed here: ids never change
  },
  offers: ['chat', 'responses', 'stored-responses', 'streaming', 'tenants'],
};

/** Faults and evictions for conformance runs, which cannot be caused from outside (chapter 5). */
async function control({ req, principal, id: name }) {
  const token = req.headers['x-conformance-token'] ?? '';
  if (token === '' || digest(token) !== digest(options['control-token'])) throw nothingHere();
  const { what, on, response_id: responseId } = await readJson(req);
  if (name === 'evict') store.deleteResponse(principal, String(responseId));
  else if (name === 'fault' && Object.hasOwn(store.faults, what)) store.faults[what] = on === true;
  else throw nothingHere();
  return {};
}

const ROUTES = [
  [/^POST \/v1\/chat\/completions$/, (exchange) => runAndAnswer(chatFormat, exchange)],
  [/^POST \/v1\/responses$/, (exchange) => runAndAnswer(responseFormat, exchange)],
  [/^GET \/v1\/responses\/([^/]+)$/, getResponse],
  [/^DELETE \/v1\/responses\/([^/]+)$/, deleteResponse],
  [/^GET \/v1\/models$/, () => ({ object: 'list', data: [{ id: 'any', object: 'model', created: 0, owned_by: '-' }] })],
  [/^GET \/v1\/capabilities$/, () => ({ object: 'capabilities', continuity: CAPABILITIES })],
  [/^GET \/health$/, () => ({ status: 'ok' })],
  [/^POST \/conformance\/v1\/(.+)$/, control],
];

const idle = Number(options['idle-seconds']) * 1000; // long by default: clients reuse idle connections (4.11)
const server = createServer({ keepAliveTimeout: idle, keepAliveTimeoutBuffer: 0 }, handle);

process.once('SIGTERM', () => {
  server.close(() => process.exit()); // running turns finish first ...
  setTimeout(() => process.exit(), 5000); // ... and one that takes too long leaves nothing behind
});

server.listen(Number(options.port), '127.0.0.1');
