'use strict';
// Shows for each defect a check that passes without it and fails with it.
//   node try_defects.js            all of them
//   node try_defects.js NAME...    only these

const http = require('node:http');
const fs = require('node:fs');
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const A = 'key-of-alice-1';
const B = 'key-of-bob-2';
const TOKEN = 'token-3';
const ROTATE = ['--compaction', 'rotate', '--turns', 'serialize'];

// ---- a model of our own

class FakeModel {
  async start() {
    this.server = http.createServer((req, res) => this.answer(req, res));
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
    this.reset();
  }

  reset() {
    this.calls = [];
    this.say = null; // (call, number) => {text, calls, finish, status, body, wait, breaks, done, raw}
  }

  // The newest call that is no summary.
  get view() {
    return this.calls.filter((call) => !call.summary).at(-1).messages;
  }

  // Its messages as short texts.
  get seen() {
    return this.view.map((one) => `${one.role}:${typeof one.content === 'string' ? one.content : JSON.stringify(one.content)}`);
  }

  async answer(req, res) {
    if (req.method === 'GET') {
      res.end('{"object":"list","data":[]}');
      return;
    }
    const pieces = [];
    for await (const piece of req) pieces.push(piece);
    const call = JSON.parse(Buffer.concat(pieces).toString());
    const last = call.messages.at(-1);
    call.summary = typeof last.content === 'string' && last.content.startsWith('Summarize the conversation above');
    this.calls.push(call);
    const spec = { text: call.summary ? 'SUMMARY' : `answer ${this.calls.length}`, finish: 'stop', ...((this.say && this.say(call, this.calls.length)) || {}) };
    if (spec.wait) await spec.wait;
    if (res.destroyed) return;
    if (spec.status) {
      res.writeHead(spec.status, { 'content-type': 'application/json' });
      res.end(spec.body || JSON.stringify({ error: { message: 'no', type: 'x', code: 'y' } }));
      return;
    }
    const tools = spec.calls && spec.calls.map((one, index) => ({ index, id: one.id || `call_${this.calls.length}_${index}`, type: 'function', function: { name: one.name, arguments: one.arguments || '{}' } }));
    const finish = tools ? 'tool_calls' : spec.finish;
    if (!call.stream) {
      if (spec.breaks) {
        res.writeHead(500);
        res.end();
        return;
      }
      res.writeHead(200, { 'content-type': 'application/json' });
      const message = { role: 'assistant', content: tools ? null : spec.text };
      if (tools) message.tool_calls = tools.map(({ index, ...rest }) => rest);
      res.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: finish }] }));
      return;
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta, end = null) => `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: end }] })}\n\n`;
    if (spec.raw) {
      for (const bytes of spec.raw(chunk)) {
        res.write(bytes);
        await sleep(20);
      }
      res.end();
      return;
    }
    if (!tools) res.write(chunk({ role: 'assistant', content: spec.text.slice(0, 4) }));
    if (spec.pause) await spec.pause;
    if (spec.breaks) {
      if (spec.done) res.write('data: [DONE]\n\n');
      res.end();
      return;
    }
    if (tools) {
      const short = ({ index, id, type, function: f }) => ({ index, id, type, function: { name: f.name, arguments: '' } });
      res.write(chunk({ tool_calls: tools.map(short) }));
      for (const half of [0, 1]) {
        for (const tool of tools) {
          const text = tool.function.arguments;
          const cut = Math.floor(text.length / 2);
          res.write(chunk({ tool_calls: [{ index: tool.index, function: { arguments: half ? text.slice(cut) : text.slice(0, cut) } }] }));
        }
      }
    } else res.write(chunk({ content: spec.text.slice(4) }));
    res.write(chunk({}, finish));
    res.end('data: [DONE]\n\n');
  }
}

// ---- the server and requests to it

class Target {
  constructor(model, flags, defects) {
    this.model = model;
    this.folder = fs.mkdtempSync('./try-');
    this.flags = flags;
    this.defects = defects;
  }

  async start() {
    const words = ['main.js', '--port', '0', '--db', `${this.folder}/data`, '--model', this.model.url, '--control-token', TOKEN, '--key', `alice=${A}`, '--key', `bob=${B}`,
      '--cors-origin', 'https://app.example', ...this.flags, ...this.defects.flatMap((name) => ['--defect', name])];
    this.child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.log = '';
    this.child.stderr.on('data', (text) => { this.log += text; });
    this.exit = new Promise((resolve) => { this.child.on('exit', resolve); });
    await new Promise((resolve, reject) => {
      this.child.stdout.on('data', (text) => {
        this.log += text;
        const match = /listening on (http:\S+)/.exec(this.log);
        if (match) { this.url = match[1]; resolve(); }
      });
      this.exit.then(() => reject(new Error(`the server ended: ${this.log}`)));
    });
  }

  async stop(signal = 'SIGTERM') {
    this.child.kill(signal);
    await this.exit;
  }

  async restart(signal) {
    await this.stop(signal);
    await this.start();
  }

  async close() {
    await this.stop('SIGKILL');
    fs.rmSync(this.folder, { recursive: true });
  }

  send(method, path, { key = A, headers = {}, body, raw, until } = {}) {
    return new Promise((resolve, reject) => {
      const bytes = raw !== undefined ? raw : body === undefined ? undefined : JSON.stringify(body);
      const all = { ...(key ? { authorization: `Bearer ${key}` } : {}), ...(bytes === undefined ? {} : { 'content-type': 'application/json' }), ...headers };
      const request = http.request(this.url + path, { method, headers: all, agent: false }, (response) => {
        const pieces = [];
        const give = () => {
          const text = Buffer.concat(pieces).toString('utf8');
          const answer = { status: response.statusCode, headers: response.headers, text };
          try { answer.json = JSON.parse(text); } catch { /* a stream */ }
          answer.events = text.split('\n\n').map((block) => block.split('\n').find((line) => line.startsWith('data: '))).filter(Boolean)
            .map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice(6))));
          return answer;
        };
        response.on('data', (piece) => {
          pieces.push(piece);
          if (until && Buffer.concat(pieces).toString().includes(until)) {
            request.destroy();
            resolve(give());
          }
        });
        response.on('end', () => resolve(give()));
        response.on('error', () => resolve(give()));
      });
      request.on('error', reject);
      request.end(bytes);
    });
  }

  chat(id, text, { more = {}, messages, headers = {}, ...rest } = {}) {
    return this.send('POST', '/v1/chat/completions', {
      ...rest, headers: { ...(id === null ? {} : { 'x-thread-id': id }), ...headers }, body: { model: 'm', messages: messages || [{ role: 'user', content: text }], ...more },
    });
  }

  respond(input, more = {}, rest = {}) {
    return this.send('POST', '/v1/responses', { ...rest, body: { model: 'm', input, ...more } });
  }

  control(name, body, key = A) {
    return this.send('POST', `/conformance/v1/${name}`, { key, headers: { 'x-conformance-token': TOKEN }, body });
  }
}

const ok = (answer) => {
  assert.equal(answer.status, 200, answer.text.slice(0, 300));
  return answer;
};
const text = (answer) => ok(answer).json.choices[0].message.content;
const id = (answer) => ok(answer).headers['x-thread-id'];
const streamText = (answer) => answer.events.filter((one) => one.choices).map((one) => (one.choices[0] && one.choices[0].delta.content) || '').join('');
const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const has = (list, entry) => assert.ok(list.includes(entry), `${JSON.stringify(list)} lacks ${entry}`);
const lacks = (list, entry) => assert.ok(!list.includes(entry), `${JSON.stringify(list)} has ${entry}`);
const only = (list, entries) => assert.deepEqual(list, entries);
const gate = () => {
  let open;
  const wait = new Promise((resolve) => { open = resolve; });
  return { wait, open };
};
const arrived = async (model, count) => {
  for (let i = 0; i < 100 && model.calls.length < count; i += 1) await sleep(10);
};

// ---- the checks: (target, model) => ...; an exception is a failure

const CHECKS = {
  // history and headers
  'window-of-turns': async (t, m) => {
    for (let i = 0; i < 15; i += 1) ok(await t.chat('long', `say ${i}`));
    has(m.seen, 'user:say 0');
  },
  'cut-off-answer-not-kept': async (t, m) => {
    m.say = () => ({ finish: 'length', text: 'half' });
    await t.chat('cut', 'one');
    m.say = null;
    await t.chat('cut', 'two');
    only(m.seen, ['user:one', 'assistant:half', 'user:two']);
  },
  'results-trimmed': async (t, m) => {
    m.say = (call, n) => (n === 1 ? { calls: [{ name: 'look', id: 'c1' }] } : {});
    const tools = [{ type: 'function', function: { name: 'look' } }];
    await t.chat('tool', 'one', { more: { tools } });
    await t.chat('tool', null, { messages: [{ role: 'tool', tool_call_id: 'c1', content: '  12:00\n' }] });
    await t.chat('tool', 'two');
    has(m.seen, 'tool:  12:00\n');
  },
  'restart-normalises-text': async (t, m) => {
    await t.chat('nfd', 'cafe\u0301');
    await t.restart();
    await t.chat('nfd', 'two');
    has(m.seen, 'user:cafe\u0301');
  },
  'images-not-kept': async (t, m) => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    await t.chat('img', null, { messages: [user([{ type: 'text', text: 'what?' }, image])] });
    await t.chat('img', 'two');
    assert.deepEqual(m.view[0].content[1], image);
  },
  'all-last-user-messages': async (t, m) => {
    await t.chat('x', null, { messages: [user('ghost'), user('real')] });
    only(m.seen, ['user:real']);
  },
  'header-prompt-kept': async (t, m) => {
    await t.chat('x', null, { messages: [{ role: 'system', content: 'pirate' }, user('one')] });
    await t.chat('x', 'two');
    lacks(m.seen, 'system:pirate');
  },
  'empty-header-refused': async (t) => { ok(await t.chat('', 'hello')); },
  'second-header-wins': async (t, m) => {
    await t.chat('first', 'in first');
    const answer = await t.chat('first', 'next', { headers: { 'x-hermes-session-id': 'second' } });
    if (answer.status === 200) has(m.seen, 'user:in first');
  },
  'released-late': async (t) => {
    for (let i = 0; i < 3; i += 1) ok(await t.chat('x', `turn ${i}`));
  },
  // responses
  'branch-takes-slug': async (t, m) => {
    const one = ok(await t.respond('one', { conversation: 's' })).json;
    await t.respond('two', { conversation: 's' });
    await t.respond('branch', { previous_response_id: one.id });
    await t.respond('three', { conversation: 's' });
    has(m.seen, 'user:two');
    lacks(m.seen, 'user:branch');
  },
  'delete-response-takes-slug': async (t, m) => {
    const one = ok(await t.respond('one', { conversation: 's' })).json;
    ok(await t.send('DELETE', `/v1/responses/${one.id}`));
    await t.respond('two', { conversation: 's' });
    has(m.seen, 'user:one');
  },
  'cache-loses-slug': {
    flags: ['--keep-responses', '10'],
    async run(t, m) {
      await t.respond('one', { conversation: 's' });
      for (let i = 0; i < 11; i += 1) ok(await t.respond(`other ${i}`));
      await t.respond('two', { conversation: 's' });
      has(m.seen, 'user:one');
    },
  },
  'evict-cuts-history': async (t, m) => {
    const one = ok(await t.respond('one', { conversation: 's' })).json;
    ok(await t.control('evict', { response_id: one.id }));
    await t.respond('two', { conversation: 's' });
    has(m.seen, 'user:one');
  },
  'instructions-stay': async (t, m) => {
    const one = ok(await t.respond('one', { instructions: 'be a pirate' })).json;
    await t.respond('two', { previous_response_id: one.id });
    lacks(m.seen, 'system:be a pirate');
  },
  'unstored-turn-names-slug': async (t) => {
    const one = ok(await t.respond('one', { conversation: 's', store: false }));
    await t.respond('two', { conversation: 's' });
    assert.equal((await t.send('GET', `/v1/sessions/${encodeURIComponent(id(one))}`)).status, 404);
    assert.equal((await t.send('GET', '/v1/sessions')).json.data.length, 1);
  },
  'unstored-turn-compresses': async (t, m) => {
    const first = ok(await t.respond('one', { conversation: 's' }));
    await t.respond('two', { conversation: 's' });
    ok(await t.control('compress', { session_id: id(first) }));
    await t.respond('unstored', { conversation: 's', store: false });
    has((await t.send('GET', `/v1/sessions/${encodeURIComponent(id(first))}/messages`)).json.data.map((one) => one.content), 'one');
  },
  'null-is-false': async (t) => {
    const one = ok(await t.respond('one', { store: null })).json;
    ok(await t.send('GET', `/v1/responses/${one.id}`));
  },
  'last-by-id': async (t, m) => {
    const one = ok(await t.respond('one', { conversation: 's' }));
    await t.chat(id(one), 'by chat');
    await t.respond('two', { previous_response_id: one.json.id });
    only(m.seen, ['user:one', 'assistant:answer 1', 'user:two']);
  },
  'stream-stored-unfinished': async (t) => {
    const answer = ok(await t.respond('one', { stream: true }));
    const done = answer.events.at(-1).response;
    const stored = ok(await t.send('GET', `/v1/responses/${done.id}`)).json;
    assert.deepEqual([stored.status, stored.output], [done.status, done.output]);
  },
  'deleted-response-continues': async (t) => {
    const one = ok(await t.respond('one')).json;
    ok(await t.send('DELETE', `/v1/responses/${one.id}`));
    assert.notEqual((await t.respond('two', { previous_response_id: one.id })).status, 200);
  },
  'client-names-response': async (t) => {
    const one = ok(await t.respond('one')).json;
    await t.respond('two', { id: one.id });
    assert.deepEqual((await t.send('GET', `/v1/responses/${one.id}`)).json.output, one.output);
  },
  'header-and-response-mixed': async (t, m) => {
    const one = ok(await t.respond('one')).json;
    await t.chat('other', 'in other');
    const answer = await t.respond('both', { previous_response_id: one.id }, { headers: { 'x-thread-id': 'other' } });
    await t.chat('other', 'later');
    if (answer.status !== 200) has(m.seen, 'user:in other');
    else lacks(m.seen, 'user:one');
  },
  'slug-is-session-id': async (t, m) => {
    await t.chat('shared-name', 'by header');
    await t.respond('by slug', { conversation: 'shared-name' });
    only(m.seen, ['user:by slug']);
  },
  'slug-end-trimmed': async (t, m) => {
    await t.respond('one', { conversation: 'list' });
    await t.respond('two', { conversation: 'list ' });
    only(m.seen, ['user:two']);
  },
  'slug-length-in-units': async (t) => { ok(await t.respond('one', { conversation: '\u{1F600}'.repeat(200) })); },
  'slug-in-plain-object': async (t) => { ok(await t.respond('one', { conversation: 'constructor' })); },
  'conversation-leaves-session': async (t) => {
    const made = ok(await t.send('POST', '/v1/conversations', { body: {} })).json;
    const one = ok(await t.respond('secret', { conversation: made.id }));
    ok(await t.send('DELETE', `/v1/conversations/${made.id}`));
    assert.equal((await t.send('GET', `/v1/responses/${one.json.id}`)).status, 404);
    assert.equal((await t.send('GET', `/v1/sessions/${encodeURIComponent(id(one))}`)).status, 404);
  },
  // recovery
  'answer-before-disk': async (t, m) => {
    ok(await t.chat('x', 'one'));
    await t.restart('SIGKILL');
    await t.chat('x', 'two');
    has(m.seen, 'user:one');
  },
  'restart-loses-bound-slug': async (t, m) => {
    await t.respond('one', { conversation: 's' }, { headers: { 'x-thread-id': 'mine' } });
    await t.restart();
    await t.respond('two', { conversation: 's' });
    has(m.seen, 'user:one');
  },
  'failed-turn-keeps-question': async (t, m) => {
    await t.chat('x', 'one');
    m.say = () => ({ status: 500 });
    assert.equal((await t.chat('x', 'lost')).status, 502);
    m.say = null;
    await t.chat('x', 'two');
    lacks(m.seen, 'user:lost');
  },
  'done-is-enough': async (t, m) => {
    m.say = () => ({ breaks: true, done: true, text: 'partial answer' });
    const answer = await t.chat('x', 'one', { more: { stream: true } });
    m.say = null;
    lacks(answer.events.map((one) => one.choices && one.choices[0].finish_reason), 'stop');
    await t.chat('x', 'two');
    lacks(m.seen, 'user:one');
  },
  'failed-write-stays-in-memory': async (t, m) => {
    await t.chat('x', 'one');
    await t.control('fault', { what: 'write', on: true });
    assert.equal((await t.chat('x', 'refused')).status, 503);
    await t.control('fault', { what: 'write', on: false });
    await t.chat('x', 'two');
    lacks(m.seen, 'user:refused');
  },
  'slug-fault-is-new': async (t, m) => {
    await t.respond('one', { conversation: 's' });
    await t.control('fault', { what: 'read', on: true });
    const before = m.calls.length;
    const answer = await t.respond('in the dark', { conversation: 's' });
    await t.control('fault', { what: 'read', on: false });
    assert.equal(answer.status, 503);
    assert.equal(m.calls.length, before);
  },
  'replays-lost-at-restart': async (t) => {
    const one = ok(await t.chat('x', 'one', { headers: { 'idempotency-key': 'k' } }));
    await t.restart();
    assert.equal(text(await t.chat('x', 'one', { headers: { 'idempotency-key': 'k' } })), text(one));
  },
  'hang-up-stores-half': async (t, m) => {
    const hold = gate();
    m.say = () => ({ text: 'half of it', pause: hold.wait });
    await t.chat('x', 'gone', { more: { stream: true }, until: 'half' });
    await sleep(100);
    hold.open();
    m.say = null;
    await sleep(50);
    await t.chat('x', 'two');
    if (m.seen.includes('user:gone')) has(m.seen, 'assistant:half of it');
  },
  'hang-up-keeps-session': async (t, m) => {
    const hold = gate();
    m.say = () => ({ wait: hold.wait });
    const request = http.request(`${t.url}/v1/chat/completions`, { method: 'POST', agent: false, headers: { authorization: `Bearer ${A}`, 'content-type': 'application/json', 'x-thread-id': 'x' } });
    request.on('error', () => {});
    request.end(JSON.stringify({ model: 'm', messages: [user('gone')] }));
    await arrived(m, 1);
    request.destroy();
    await sleep(100);
    hold.open();
    m.say = null;
    await sleep(100);
    ok(await t.chat('x', 'two'));
  },
  'degraded-not-marked': {
    flags: ['--degraded', 'answer'],
    async run(t) {
      await t.chat('x', 'one');
      await t.control('fault', { what: 'read', on: true });
      const answer = ok(await t.chat('x', 'two'));
      assert.ok(answer.headers['x-session-degraded']);
    },
  },
  'error-shows-path': async (t) => {
    await t.control('fault', { what: 'write', on: true });
    const answer = await t.chat('x', 'one');
    assert.ok(!answer.text.includes(t.folder.slice(2)), answer.text);
  },
  // compression
  'summary-swallows-message': async (t, m) => {
    await t.chat('x', 'one');
    await t.chat('x', 'two');
    await t.control('compress', { session_id: 'x' });
    await t.chat('x', 'three');
    has(m.seen, 'user:three');
  },
  'compression-parts-tool-pair': async (t, m) => {
    await t.chat('x', 'one');
    m.say = (call, n) => (n === 2 ? { calls: [{ name: 'look', id: 'c1' }] } : {});
    await t.chat('x', 'two', { more: { tools: [{ type: 'function', function: { name: 'look' } }] } });
    await t.chat('x', null, { messages: [{ role: 'tool', tool_call_id: 'c1', content: 'found' }] });
    await t.control('compress', { session_id: 'x' });
    await t.chat('x', 'three');
    m.view.forEach((one, index) => { if (one.role === 'tool') assert.ok(m.view[index - 1].tool_calls); });
  },
  'failed-summary-drops': async (t, m) => {
    await t.chat('x', 'one');
    await t.chat('x', 'two');
    await t.control('compress', { session_id: 'x' });
    m.say = (call) => (call.summary ? { status: 500 } : {});
    await t.chat('x', 'three');
    m.say = (call) => (call.summary ? { status: 500 } : {});
    await t.chat('x', 'four');
    has(m.seen, 'user:one');
  },
  'branch-from-compressed': async (t, m) => {
    const first = ok(await t.respond('one', { conversation: 's' }));
    await t.respond('two', { conversation: 's' });
    await t.control('compress', { session_id: id(first) });
    await t.respond('three', { conversation: 's' });
    await t.respond('branch', { previous_response_id: first.json.id });
    only(m.seen, ['user:one', 'assistant:answer 1', 'user:branch']);
  },
  'restart-loses-summary': async (t, m) => {
    await t.chat('x', 'one');
    await t.chat('x', 'two');
    await t.control('compress', { session_id: 'x' });
    await t.chat('x', 'three');
    await t.restart();
    await t.chat('x', 'four');
    assert.ok(m.seen.some((one) => one.includes('SUMMARY') || one === 'user:one'), JSON.stringify(m.seen));
  },
  'summary-and-all': async (t, m) => {
    const talk = [user('one'), assistant('a'), user('two'), assistant('b'), user('three')];
    const first = await t.chat(null, null, { messages: talk.slice(0, 3) });
    await t.control('compress', { session_id: id(first) });
    await t.chat(null, null, { messages: talk });
    await t.chat(null, null, { messages: [...talk, assistant('c'), user('four')] });
    assert.ok(m.seen.some((one) => one.includes('SUMMARY')));
    lacks(m.seen, 'user:one');
  },
  'tip-one-step': {
    flags: ROTATE,
    async run(t, m) {
      await t.chat('x', 'one');
      for (const word of ['two', 'three']) {
        await t.control('compress', { session_id: 'x' });
        await t.chat('x', word);
        await t.chat('x', `${word} more`);
      }
      const tip = id(await t.chat('x', 'last'));
      assert.equal(ok(await t.send('GET', `/v1/sessions/${encodeURIComponent(tip)}`)).json.end_reason, null);
      has(m.seen, 'user:three more');
    },
  },
  'tip-follows-any-child': {
    flags: ROTATE,
    async run(t, m) {
      await t.chat('x', 'one');
      const fork = ok(await t.control('fork', { session_id: 'x' })).json.session_id;
      await t.chat(fork, 'in the fork');
      await t.chat('x', 'two');
      lacks(m.seen, 'user:in the fork');
    },
  },
  'rotation-header-old': {
    flags: ROTATE,
    async run(t) {
      await t.chat('x', 'one');
      await t.control('compress', { session_id: 'x' });
      const answer = ok(await t.chat('x', 'two'));
      assert.equal(id(answer), answer.json.session.id);
    },
  },
  'rotation-drops-slug': {
    flags: ROTATE,
    async run(t) {
      const first = ok(await t.respond('one', { conversation: 's' }));
      await t.control('compress', { session_id: id(first) });
      const next = ok(await t.respond('two', { conversation: 's' }));
      assert.equal((await t.send('GET', `/v1/sessions/${encodeURIComponent(id(next))}`)).json.conversation, 's');
    },
  },
  // concurrency
  'slug-race': async (t, m) => {
    const hold = gate();
    m.say = () => ({ wait: hold.wait });
    const both = [t.respond('a', { conversation: 's' }), t.respond('b', { conversation: 's' })];
    await arrived(m, 2);
    hold.open();
    const ids = (await Promise.all(both)).filter((one) => one.status === 200).map(id);
    assert.equal(new Set(ids).size, 1);
  },
  'few-locks': async (t, m) => {
    const hold = gate();
    m.say = (call) => (call.messages.at(-1).content.startsWith('slow') ? { wait: hold.wait } : {});
    const slow = t.chat('x', 'slow');
    await arrived(m, 1);
    const others = Array.from({ length: 20 }, (_, i) => t.chat(`other-${i}`, 'slow too'));
    await arrived(m, 21);
    const second = t.chat('x', 'second');
    await sleep(100);
    hold.open();
    await Promise.all([slow, ...others]);
    if ((await second).status === 200) has(m.calls.find((call) => call.messages.at(-1).content === 'second').messages.map((one) => one.content), 'slow');
  },
  'one-stream-at-a-time': async (t, m) => {
    const hold = gate();
    m.say = (call) => (call.messages[0].content === 'slow' ? { wait: hold.wait } : {});
    const slow = t.chat('x', 'slow', { more: { stream: true } });
    await arrived(m, 1);
    const other = await t.chat('y', 'quick', { more: { stream: true } });
    hold.open();
    await slow;
    ok(other);
  },
  'key-for-all-sessions': async (t) => {
    const headers = { 'idempotency-key': 'k' };
    const one = ok(await t.chat('x', 'same words', { headers }));
    assert.notEqual(text(await t.chat('y', 'same words', { headers })), text(one));
  },
  'key-for-all-principals': async (t) => {
    const headers = { 'idempotency-key': 'k' };
    const one = ok(await t.chat(null, 'same words', { headers }));
    assert.notEqual(text(await t.chat(null, 'same words', { headers, key: B })), text(one));
  },
  'key-ignores-prompt': async (t) => {
    const headers = { 'idempotency-key': 'k' };
    ok(await t.chat('x', null, { headers, messages: [{ role: 'system', content: 'a' }, user('one')] }));
    assert.notEqual((await t.chat('x', null, { headers, messages: [{ role: 'system', content: 'b' }, user('one')] })).status, 200);
  },
  'same-key-at-once': async (t, m) => {
    const hold = gate();
    m.say = () => ({ wait: hold.wait });
    const headers = { 'idempotency-key': 'k' };
    const both = [t.respond('one', {}, { headers }), t.respond('one', {}, { headers })];
    await arrived(m, 2);
    hold.open();
    const made = (await Promise.all(both)).filter((one) => one.status === 200).map((one) => one.json.id);
    assert.equal(new Set(made).size, 1);
  },
  'lock-without-principal': async (t, m) => {
    const hold = gate();
    m.say = (call) => (call.messages[0].content === 'slow' ? { wait: hold.wait } : {});
    const slow = t.chat('x', 'slow');
    await arrived(m, 1);
    const other = await t.chat('x', 'quick', { key: B });
    hold.open();
    await slow;
    ok(other);
  },
  // streams
  'letters-cut-in-two': async (t, m) => {
    m.say = () => ({
      raw: (chunk) => {
        const bytes = Buffer.from(chunk({ content: 'caf\u00e9' }));
        const cut = bytes.indexOf(0xc3) + 1;
        return [bytes.subarray(0, cut), bytes.subarray(cut), Buffer.from(chunk({}, 'stop'))];
      },
    });
    assert.equal(streamText(await t.chat('x', 'one', { more: { stream: true } })), 'caf\u00e9');
  },
  'line-separator-ends-line': async (t, m) => {
    m.say = () => ({ text: 'line\u2028next' });
    const answer = await t.chat('x', 'one', { more: { stream: true } });
    assert.equal(streamText(answer), 'line\u2028next');
  },
  'tool-pieces-to-last-call': async (t, m) => {
    m.say = () => ({ calls: [{ name: 'look', id: 'c1', arguments: '{"word":"red"}' }, { name: 'look', id: 'c2', arguments: '{"word":"blue"}' }] });
    const answer = await t.chat('x', 'one', { more: { stream: true, tools: [{ type: 'function', function: { name: 'look' } }] } });
    const given = answer.events.flatMap((one) => (one.choices && one.choices[0].delta.tool_calls) || []).map((call) => call.function.arguments);
    only(given, ['{"word":"red"}', '{"word":"blue"}']);
  },
  'last-chunk-other-id': async (t) => {
    const answer = await t.chat('x', 'one', { more: { stream: true } });
    assert.equal(new Set(answer.events.filter((one) => one.id).map((one) => one.id)).size, 1);
  },
  'broken-stream-without-end': async (t, m) => {
    m.say = () => ({ breaks: true });
    const answer = await t.chat('x', 'one', { more: { stream: true } });
    assert.equal(answer.events.at(-1), '[DONE]');
  },
  'failed-response-kept': async (t, m) => {
    const one = ok(await t.respond('one')).json;
    m.say = () => ({ breaks: true });
    const failed = await t.respond('two', { previous_response_id: one.id, stream: true });
    const name = failed.events.at(-1).response.id;
    assert.equal((await t.send('GET', `/v1/responses/${name}`)).status, 404);
  },
  'events-of-calls-not-counted': async (t, m) => {
    m.say = () => ({ calls: [{ name: 'look', id: 'c1' }] });
    const answer = await t.respond('one', { stream: true, tools: [{ type: 'function', name: 'look' }] });
    only(answer.events.map((one) => one.sequence_number), answer.events.map((_, index) => index));
  },
  'finish-before-disk': async (t) => {
    await t.control('fault', { what: 'write', on: true });
    const answer = await t.chat('x', 'one', { more: { stream: true } });
    lacks(answer.events.map((one) => one.choices && one.choices[0].finish_reason), 'stop');
  },
  'stream-not-exposed': async (t) => {
    const answer = await t.chat('x', 'one', { more: { stream: true }, headers: { origin: 'https://app.example' } });
    assert.ok((answer.headers['access-control-expose-headers'] || '').toLowerCase().includes('x-thread-id'));
  },
  // sessions
  'delete-leaves-responses': async (t) => {
    const one = ok(await t.respond('one'));
    ok(await t.send('DELETE', `/v1/sessions/${encodeURIComponent(id(one))}`));
    assert.equal((await t.send('GET', `/v1/responses/${one.json.id}`)).status, 404);
  },
  'delete-leaves-replays': async (t, m) => {
    const headers = { 'idempotency-key': 'k' };
    ok(await t.chat('x', 'one', { headers }));
    ok(await t.send('DELETE', '/v1/sessions/x'));
    ok(await t.chat('x', 'one', { headers }));
    assert.equal(m.calls.length, 2);
  },
  'delete-takes-branches': async (t) => {
    const one = ok(await t.respond('one'));
    await t.respond('two', { previous_response_id: one.json.id });
    const branch = ok(await t.respond('branch', { previous_response_id: one.json.id }));
    ok(await t.send('DELETE', `/v1/sessions/${encodeURIComponent(id(one))}`));
    ok(await t.send('GET', `/v1/responses/${branch.json.id}`));
  },
  'delete-brings-back': async (t, m) => {
    await t.chat('x', 'secret');
    const hold = gate();
    m.say = () => ({ wait: hold.wait });
    const slow = t.chat('x', 'slow').catch(() => null);
    await arrived(m, 2);
    const gone = t.send('DELETE', '/v1/sessions/x');
    await sleep(50);
    hold.open();
    await slow;
    ok(await gone);
    m.say = null;
    await t.chat('x', 'two');
    lacks(m.seen, 'user:secret');
  },
  'path-decoded-twice': async (t) => {
    await t.chat('a/b', 'slash');
    await t.chat('a%2Fb', 'percent');
    const messages = ok(await t.send('GET', '/v1/sessions/a%252Fb/messages')).json.data;
    assert.equal(messages[0].content, 'percent');
  },
  'abandoned-call-stays': async (t, m) => {
    m.say = (call, n) => (n === 1 ? { calls: [{ name: 'look', id: 'c1' }] } : {});
    await t.chat('x', 'one', { more: { tools: [{ type: 'function', function: { name: 'look' } }] } });
    await t.chat('x', 'never mind');
    m.view.forEach((one, index) => { if (one.tool_calls) assert.equal(m.view[index + 1].role, 'tool'); });
  },
  'empty-answer-not-kept': async (t, m) => {
    m.say = (call, n) => (n === 1 ? { text: '' } : {});
    await t.chat('x', 'one');
    await t.chat('x', 'two');
    only(m.view.map((one) => one.role), ['user', 'assistant', 'user']);
  },
  'model-error-shown': async (t, m) => {
    m.say = () => ({ status: 500, body: 'Traceback (most recent call last): /srv/llm/app.py line 3' });
    const answer = await t.chat('x', 'one');
    assert.ok(!answer.text.includes('Traceback') && !answer.text.includes('/srv/'));
  },
  'depth-unchecked': async (t) => {
    const nested = `${'['.repeat(60000)}${']'.repeat(60000)}`;
    const answer = await t.send('POST', '/v1/chat/completions', { raw: `{"model":"m","messages":[{"role":"user","content":"x"}],"extra":${nested}}` });
    assert.ok(answer.status < 500, `${answer.status}`);
  },
  'list-by-id': async (t) => {
    for (const name of ['b', 'c', 'a']) await t.chat(name, 'one');
    only((await t.send('GET', '/v1/sessions')).json.data.map((one) => one.id), ['a', 'c', 'b']);
  },
  'cursor-by-second': async (t) => {
    for (let i = 0; i < 6; i += 1) await t.chat(`s${i}`, 'one');
    const names = [];
    for (let after = '', more = true; more;) {
      const page = ok(await t.send('GET', `/v1/sessions?limit=2${after}`)).json;
      names.push(...page.data.map((one) => one.id));
      more = page.has_more;
      after = `&after=${names.at(-1)}`;
    }
    assert.equal(names.length, 6);
  },
  'foreign-cursor': async (t) => {
    await t.chat('mine', 'one');
    await t.chat('his', 'one', { key: B });
    const [known, unknown] = [await t.send('GET', '/v1/sessions?after=his'), await t.send('GET', '/v1/sessions?after=nobody')];
    only([known.status, known.text], [unknown.status, unknown.text]);
  },
  // derivation
  'empty-prompt-not-in-id': async (t) => {
    const prompt = (...texts) => [...texts.map((one) => ({ role: 'system', content: one })), user('Hello')];
    assert.notEqual(id(await t.chat(null, null, { messages: prompt('a', '', 'c') })), id(await t.chat(null, null, { messages: prompt('a', 'c') })));
  },
  'late-prompt-in-id': {
    async run(t) {
      const talk = [user('Hello')];
      const one = id(await t.chat(null, null, { messages: talk }));
      const late = [{ role: 'system', content: 'now brief' }, assistant('hi')];
      // with a system message after the first user message the id stays
      const two = id(await t.chat(null, null, { messages: [...talk, late[1], late[0], user('More')] }));
      assert.equal(two, one);
      const three = id(await t.chat(null, null, { messages: [{ role: 'system', content: 'p' }, ...talk] }));
      const four = id(await t.chat(null, null, { messages: [{ role: 'system', content: 'p' }, ...talk, late[1], { role: 'developer', content: 'q' }, user('More')] }));
      assert.equal(four, three);
    },
  },
  'id-of-composed-text': async (t) => {
    assert.notEqual(id(await t.chat(null, 'caf\u00e9')), id(await t.chat(null, 'cafe\u0301')));
  },
  'id-of-ascii-json': async (t) => {
    const wanted = require('node:crypto').createHash('sha256').update(JSON.stringify(['', 'caf\u00e9'])).digest('hex').slice(0, 32);
    assert.equal(id(await t.chat(null, 'caf\u00e9')), `api2-${wanted}`);
  },
  'id-with-user': async (t) => {
    assert.equal(id(await t.chat(null, 'Hello', { more: { user: 'u-1' } })), id(await t.chat(null, 'Hello')));
  },
  'edited-body-added': async (t, m) => {
    const one = await t.chat(null, null, { messages: [user('Hello'), assistant('Hi'), user('typo')] });
    await t.chat(null, null, { messages: [user('Hello'), assistant('Hi'), user('mended')] });
    await t.chat(id(one), 'by header');
    lacks(m.seen, 'user:typo');
  },
  'kept-prompt-not-sent': async (t, m) => {
    const one = await t.chat(null, null, { messages: [{ role: 'system', content: 'pirate' }, user('Hello')] });
    await t.chat(id(one), 'by header');
    has(m.seen, 'system:pirate');
  },
  // tenants
  'restart-mixes-slugs': async (t, m) => {
    await t.chat('b', 'bob was here', { key: B });
    await t.respond('secret of alice', { conversation: 'plans' });
    await t.restart();
    await t.respond('hello', { conversation: 'plans' }, { key: B });
    lacks(m.seen, 'user:secret of alice');
  },
  'foreign-response-differs': async (t) => {
    const one = ok(await t.respond('one')).json;
    const foreign = await t.send('GET', `/v1/responses/${one.id}`, { key: B });
    const unknown = await t.send('GET', '/v1/responses/resp_unknown', { key: B });
    only([foreign.status, foreign.text], [unknown.status, unknown.text]);
  },
  'key-by-prefix': async (t) => { assert.equal((await t.send('GET', '/v1/models', { key: `${A}0` })).status, 401); },
  'body-before-key': async (t) => {
    assert.equal((await t.send('POST', '/v1/chat/completions', { key: 'wrong', raw: '{"model":' })).status, 401);
  },
  // environment
  'files-by-session-name': async (t, m) => {
    await write(t, m, 'x', 'secret');
    ok(await t.send('DELETE', '/v1/sessions/x'));
    assert.notEqual(await read(t, m, 'x'), 'secret');
  },
  'files-lost-at-restart': async (t, m) => {
    await write(t, m, 'x', 'note');
    await t.restart();
    assert.equal(await read(t, m, 'x'), 'note');
  },
  'files-of-failed-turn': async (t, m) => {
    await t.chat('x', 'first');
    m.say = (call) => (call.messages.at(-1).role === 'tool' ? { status: 500 } : { calls: [{ name: 'write_file', arguments: '{"path":"n.txt","content":"lost"}' }] });
    assert.equal((await t.chat('x', 'write')).status, 502);
    assert.notEqual(await read(t, m, 'x'), 'lost');
  },
  'files-without-principal': async (t, m) => {
    await write(t, m, 'x', 'secret');
    assert.notEqual(await read(t, m, 'x', B), 'secret');
  },
  // strict
  'allow-is-short': async (t) => {
    const allowed = (await t.send('PUT', '/v1/sessions/x')).headers.allow.split(/, */).sort();
    only(allowed, ['DELETE', 'GET']);
  },
  'bad-utf8-replaced': async (t) => {
    const raw = Buffer.concat([Buffer.from('{"model":"m","messages":[{"role":"user","content":"'), Buffer.from([0xff]), Buffer.from('"}]}')]);
    assert.equal((await t.send('POST', '/v1/chat/completions', { raw })).status, 400);
  },
};

async function write(t, m, name, content) {
  m.say = (call) => (call.messages.at(-1).role === 'tool' ? {} : { calls: [{ name: 'write_file', arguments: JSON.stringify({ path: 'n.txt', content }) }] });
  ok(await t.chat(name, 'write'));
  m.say = null;
}

async function read(t, m, name, key = A) {
  m.say = (call) => (call.messages.at(-1).role === 'tool' ? {} : { calls: [{ name: 'read_file', arguments: '{"path":"n.txt"}' }] });
  ok(await t.chat(name, 'read', { key }));
  m.say = null;
  return m.view.filter((one) => one.role === 'tool').at(-1).content;
}

// ---- running them

async function attempt(model, name, defects) {
  const check = CHECKS[name];
  model.reset();
  const target = new Target(model, check.flags || [], defects);
  try {
    await target.start();
    const late = sleep(30000).then(() => { throw new Error('no end after 30 seconds'); });
    late.catch(() => {});
    await Promise.race([(check.run || check)(target, model), late]);
    return null;
  } catch (error) {
    return error;
  } finally {
    await target.close();
  }
}

async function main() {
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(CHECKS);
  const model = new FakeModel();
  await model.start();
  let bad = 0;
  for (const name of names) {
    const without = await attempt(model, name, []);
    const withIt = await attempt(model, name, [name]);
    const right = without === null && withIt !== null;
    if (!right) bad += 1;
    const note = without ? `fails without the defect: ${without.stack.split('\n').slice(0, 6).join(' | ')}` : withIt ? withIt.message.split('\n').join(' ').slice(0, 110) : 'passes with the defect';
    console.log(`${right ? 'ok ' : 'BAD'} ${name}: ${note}`);
  }
  console.log(bad === 0 ? `all ${names.length} are seen` : `${bad} of ${names.length} are wrong`);
  model.server.closeAllConnections();
  model.server.close();
  process.exit(bad === 0 ? 0 : 1);
}

main();
