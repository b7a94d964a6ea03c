'use strict';
// The client of the model: one call of POST {base}/chat/completions, plain or streamed. Both give the same reply:
// {text, calls: [{id, name, arguments}], finish, usage}.

const http = require('node:http');
const { ApiError, ClientGone } = require('./errors');
const { defect } = require('./defects');

const MAX_REPLY = 64 * 1024 * 1024;
const FINISHES = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

const failed = (message = 'The model did not answer.') => new ApiError(502, 'upstream_error', message);

// Lines end with LF, CR LF or CR, and with nothing else.
class EventReader {
  constructor(onData) {
    this.decoder = new TextDecoder('utf-8');
    this.rest = '';
    this.data = [];
    this.onData = onData;
  }

  push(bytes) {
    this.rest += defect('letters-cut-in-two') ? bytes.toString('utf8') : this.decoder.decode(bytes, { stream: true });
    const lineEnd = defect('line-separator-ends-line') ? /\r\n|\n|\u2028|\r(?!$)/ : /\r\n|\n|\r(?!$)/;
    for (;;) {
      const match = lineEnd.exec(this.rest);
      if (!match) return;
      const line = this.rest.slice(0, match.index);
      this.rest = this.rest.slice(match.index + match[0].length);
      this.line(line);
    }
  }

  line(line) {
    if (line === '') {
      if (this.data.length > 0) this.onData(this.data.join('\n'));
      this.data = [];
    } else if (line.startsWith('data:')) {
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    } else if (defect('line-separator-ends-line') && this.data.length > 0 && !/^(event|id|retry|:)/.test(line)) {
      this.data[this.data.length - 1] += line;
    }
  }

  end() {
    if (this.rest !== '') this.line(this.rest.replace(/\r$/, ''));
    this.line('');
  }
}

class Model {
  constructor(base, { seconds = 120 } = {}) {
    this.base = base.replace(/\/+$/, '');
    this.seconds = seconds;
  }

  open(method, path, body, signal) {
    return new Promise((resolve, reject) => {
      const bytes = body === undefined ? null : Buffer.from(JSON.stringify(body), 'utf8');
      const headers = bytes ? { 'content-type': 'application/json', 'content-length': bytes.length } : {};
      const request = http.request(this.base + path, { method, headers, agent: false, signal, timeout: this.seconds * 1000 });
      request.on('timeout', () => {
        request.late = true;
        request.destroy();
      });
      request.on('error', (error) => reject(this.explain(error, signal, request)));
      request.on('response', resolve);
      request.end(bytes || undefined);
    });
  }

  explain(error, signal, request) {
    if (error instanceof ApiError) return error;
    if (request.late) return new ApiError(504, 'upstream_error', 'The model took too long.');
    if (signal && signal.aborted) return signal.reason instanceof Error ? signal.reason : new ClientGone();
    return failed();
  }

  async read(response, signal, onBytes) {
    let size = 0;
    try {
      for await (const bytes of response) {
        size += bytes.length;
        if (size > MAX_REPLY) throw failed('The answer of the model is too long.');
        if (onBytes(bytes) === true) break;
      }
    } catch (error) {
      throw this.explain(error, signal, response.req);
    }
  }

  async text(response, signal) {
    const pieces = [];
    await this.read(response, signal, (bytes) => { pieces.push(bytes); });
    return Buffer.concat(pieces).toString('utf8');
  }

  async refuse(response, signal) {
    const text = await this.text(response, signal).catch(() => '');
    let given = null;
    try {
      given = JSON.parse(text).error;
    } catch { /* no error object */ }
    if (response.statusCode === 429) {
      const word = (value) => (typeof value === 'string' && /^[a-z_]{1,64}$/.test(value) ? value : null);
      const after = response.headers['retry-after'];
      throw new ApiError(429, word(given && given.code) || 'upstream_error', 'The model has too much to do.', {
        type: word(given && given.type) || 'server_error',
        headers: /^[0-9]+$/.test(after || '') ? { 'retry-after': after } : {},
      });
    }
    if (defect('model-error-shown')) throw failed(`The model answered ${response.statusCode}: ${text.slice(0, 2000)}`);
    throw failed();
  }

  async ask(body, { signal, onText } = {}) {
    const response = await this.open('POST', '/chat/completions', body, signal);
    if (response.statusCode !== 200) await this.refuse(response, signal);
    return body.stream ? this.readStream(response, signal, onText) : this.readPlain(response, signal);
  }

  async readPlain(response, signal) {
    let reply;
    try {
      reply = JSON.parse(await this.text(response, signal));
    } catch (error) {
      if (error instanceof SyntaxError) throw failed('The answer of the model is not JSON.');
      throw error;
    }
    const choice = reply && Array.isArray(reply.choices) ? reply.choices[0] : null;
    const message = choice && choice.message;
    if (!message || typeof message !== 'object' || !FINISHES.has(choice.finish_reason)) throw failed('The answer of the model is not complete.');
    if (message.content != null && typeof message.content !== 'string') throw failed('The answer of the model is no text.');
    const calls = (message.tool_calls || []).map((call) => ({ id: call.id, name: call.function && call.function.name, arguments: (call.function && call.function.arguments) || '' }));
    return this.reply(message.content || '', calls, choice.finish_reason, reply.usage);
  }

  async readStream(response, signal, onText) {
    let text = '';
    let finish = null;
    let usage = null;
    let over = false;
    const calls = [];
    const reader = new EventReader((data) => {
      if (data === '[DONE]') {
        over = true;
        if (finish === null && defect('done-is-enough')) finish = 'stop';
        return;
      }
      let chunk;
      try {
        chunk = JSON.parse(data);
      } catch {
        throw failed('The stream of the model is not JSON.');
      }
      if (!chunk || typeof chunk !== 'object' || chunk.error) throw failed();
      if (chunk.usage) usage = chunk.usage;
      const choice = Array.isArray(chunk.choices) ? chunk.choices.find((one) => (one.index || 0) === 0) : null;
      if (!choice) return;
      const delta = choice.delta || {};
      if (typeof delta.content === 'string' && delta.content !== '') {
        text += delta.content;
        if (onText) onText(delta.content);
      }
      for (const piece of delta.tool_calls || []) {
        let index = piece.index || 0;
        if (defect('tool-pieces-to-last-call') && !piece.id) index = Math.max(calls.length - 1, 0);
        const call = calls[index] || (calls[index] = { id: '', name: '', arguments: '' });
        if (piece.id) call.id = piece.id;
        if (piece.function && piece.function.name) call.name += piece.function.name;
        if (piece.function && piece.function.arguments) call.arguments += piece.function.arguments;
      }
      if (choice.finish_reason) finish = choice.finish_reason;
    });
    await this.read(response, signal, (bytes) => {
      reader.push(bytes);
      return over;
    });
    reader.end();
    if (!FINISHES.has(finish)) throw failed('The model stopped in the middle of its answer.');
    return this.reply(text, calls.filter(Boolean), finish, usage);
  }

  reply(text, calls, finish, usage) {
    if (calls.some((call) => !call.id || !call.name)) throw failed('The model made a tool call without a name.');
    if (finish === 'length') calls = calls.filter((call) => wellFormed(call.arguments)); // a call that was cut off cannot be run
    return { text, calls, finish, usage: usage && Number.isInteger(usage.total_tokens) ? usage : null };
  }

  async models() {
    const response = await this.open('GET', '/models');
    const text = await this.text(response);
    if (response.statusCode === 429) throw new ApiError(429, 'upstream_error', 'The model has too much to do.');
    let list = null;
    try {
      list = response.statusCode === 200 ? JSON.parse(text).data : null;
    } catch { /* a model without a list */ }
    if (!Array.isArray(list)) return [{ id: 'default', object: 'model', created: 0, owned_by: 'model' }];
    return list.filter((one) => one && typeof one.id === 'string' && one.id !== '')
      .map((one) => ({ id: one.id, object: 'model', created: Number.isInteger(one.created) ? one.created : 0, owned_by: typeof one.owned_by === 'string' ? one.owned_by : 'model' }));
  }
}

const wellFormed = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

module.exports = { Model };
