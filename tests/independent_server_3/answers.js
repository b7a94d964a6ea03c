'use strict';
// Answers: the objects of both endpoints, and their streams. An answer is
// {id, created, model, rounds: [{item, text}], calls: [{item, id, name, arguments}], finish, usage, session, echo}.

const { mint } = require('./ids');
const { defect } = require('./defects');

const PIECE = 24; // characters in one event at most
const PING_SECONDS = 15;

// ---- objects

function chatObject(a) {
  const text = a.rounds.map((round) => round.text).join('');
  const message = { role: 'assistant', refusal: null, content: text === '' && a.calls.length > 0 ? null : text };
  if (a.calls.length > 0) message.tool_calls = a.calls.map((call) => callOf(call));
  const body = {
    session: a.session,
    choices: [{ finish_reason: a.finish, index: 0, logprobs: null, message }],
    created: Math.floor(a.created),
    id: a.id,
    model: a.model,
    object: 'chat.completion',
    system_fingerprint: null,
  };
  if (a.usage) body.usage = a.usage;
  return body;
}

const callOf = (call) => ({ function: { arguments: call.arguments, name: call.name }, id: call.id, type: 'function' });

const messageItem = (round, status) => ({
  type: 'message', id: round.item, status, role: 'assistant', content: status === 'in_progress' ? [] : [textPart(round.text)],
});
const textPart = (text) => ({ annotations: [], logprobs: [], text, type: 'output_text' });
const callItem = (call, status) => ({
  type: 'function_call', id: call.item, status, call_id: call.id, name: call.name, arguments: status === 'in_progress' ? '' : call.arguments,
});

// The rounds that show: all with a text, and the last one if there would be nothing else.
function shownRounds(a) {
  const shown = a.rounds.filter((round) => round.text !== '');
  return shown.length === 0 && a.calls.length === 0 ? a.rounds.slice(-1) : shown;
}

const endStatus = (a) => (a.finish === 'length' || a.finish === 'content_filter' ? 'incomplete' : 'completed');

function responseObject(a, status = endStatus(a)) {
  const over = status === 'completed' || status === 'incomplete';
  const body = {
    object: 'response',
    id: a.id,
    created_at: a.created,
    status,
    background: false,
    conversation: a.conversation === null ? null : { id: a.conversation },
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: a.finish === 'length' ? 'max_output_tokens' : 'content_filter' } : null,
    ...a.echo,
    model: a.model,
    output: over ? [...shownRounds(a).map((round) => messageItem(round, status)), ...a.calls.map((call) => callItem(call, 'completed'))] : [],
    previous_response_id: a.previous,
    usage: over && a.usage ? {
      input_tokens: a.usage.prompt_tokens || 0,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: a.usage.completion_tokens || 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: a.usage.total_tokens,
    } : null,
  };
  if (over) body.session = a.session;
  return body;
}

// ---- streams

// Pieces of at most PIECE characters, never cut inside one.
function* pieces(text) {
  const letters = [...text];
  for (let i = 0; i < letters.length; i += PIECE) yield letters.slice(i, i + PIECE).join('');
}

class Stream {
  constructor(answer, { usage = false, head }) {
    this.a = answer;
    this.usage = usage;
    this.head = head; // sends the head and returns the response to write to
    this.out = null;
    this.ended = false;
  }

  get isOpen() {
    return this.out !== null;
  }

  open() {
    if (this.out !== null) return;
    this.out = this.head();
    this.out.write(': turn accepted\n\n');
    this.timer = setInterval(() => this.write(': still here\n\n'), PING_SECONDS * 1000);
    this.timer.unref();
    this.out.on('close', () => clearInterval(this.timer));
    this.begin();
  }

  write(text) {
    if (!this.ended && !this.out.destroyed) this.out.write(text);
  }

  close() {
    clearInterval(this.timer);
    if (this.ended) return;
    this.ended = true;
    if (!this.out.destroyed) this.out.end();
  }

  // A whole answer at once, for one that is told again.
  replay() {
    this.open();
    for (const round of this.a.rounds) {
      for (const piece of pieces(round.text)) this.piece(piece, round);
      this.endRound(round);
    }
    this.finish();
  }
}

class ChatStream extends Stream {
  chunk(delta, finish = null, more = {}) {
    const id = defect('last-chunk-other-id') && finish ? mint('chatcmpl-') : this.a.id;
    const choice = { index: 0, delta, finish_reason: finish, logprobs: null };
    return { object: 'chat.completion.chunk', id, created: Math.floor(this.a.created), model: this.a.model, choices: [choice], ...more };
  }

  send(value, event) {
    this.write(`${event ? `event: ${event}\n` : ''}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
  }

  begin() {
    this.send(this.chunk({ role: 'assistant', content: '' }));
  }

  text(text, round) {
    this.open();
    for (const piece of pieces(text)) this.piece(piece, round);
  }

  piece(piece) {
    this.send(this.chunk({ content: piece }));
  }

  endRound() {}

  finish() {
    this.open();
    const { a } = this;
    a.calls.forEach((call, index) => this.send(this.chunk({ tool_calls: [{ index, ...callOf(call) }] })));
    if (a.announce) this.send(this.chunk({}, null, { session: a.session }), 'session.moved');
    if (!this.finished) this.send(this.chunk({}, a.finish, { session: a.session }));
    if (this.usage && a.usage) this.send({ ...this.chunk({}), choices: [], usage: a.usage });
    this.send('[DONE]');
    this.close();
  }

  // Only for a test of clients: the end comes before the turn is on disk.
  finishEarly() {
    this.open();
    this.send(this.chunk({}, this.a.finish, { session: this.a.session }));
    this.finished = true;
  }

  fail(error) {
    this.send(error.body());
    if (!defect('broken-stream-without-end')) this.send('[DONE]');
    this.close();
  }
}

class ResponseStream extends Stream {
  constructor(...all) {
    super(...all);
    this.number = 0;
    this.index = 0; // of the next output item
    this.round = null; // the round whose message is open
  }

  send(type, fields) {
    this.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.number, ...fields })}\n\n`);
    if (!(defect('events-of-calls-not-counted') && fields.item && fields.item.type === 'function_call')) this.number += 1;
  }

  begin() {
    this.send('response.created', { response: responseObject(this.a, 'in_progress') });
    this.send('response.in_progress', { response: responseObject(this.a, 'in_progress') });
  }

  place(round) {
    return { item_id: round.item, output_index: this.index, content_index: 0 };
  }

  text(text, round) {
    this.open();
    for (const piece of pieces(text)) this.piece(piece, round);
  }

  piece(piece, round) {
    this.openRound(round);
    this.send('response.output_text.delta', { ...this.place(round), delta: piece, logprobs: [] });
  }

  openRound(round) {
    if (this.round !== null) return;
    this.round = round;
    this.send('response.output_item.added', { output_index: this.index, item: messageItem(round, 'in_progress') });
    this.send('response.content_part.added', { ...this.place(round), part: textPart('') });
  }

  endRound(round) {
    if (this.round === null) return;
    this.send('response.output_text.done', { ...this.place(round), text: round.text, logprobs: [] });
    this.send('response.content_part.done', { ...this.place(round), part: textPart(round.text) });
    this.send('response.output_item.done', { output_index: this.index, item: messageItem(round, 'completed') });
    this.index += 1;
    this.round = null;
  }

  finish() {
    this.open();
    const { a } = this;
    const [first] = shownRounds(a);
    if (first && this.index === 0) {
      this.openRound(first);
      this.endRound(first);
    }
    for (const call of a.calls) {
      const place = { output_index: this.index, item_id: call.item };
      this.send('response.output_item.added', { output_index: this.index, item: callItem(call, 'in_progress') });
      this.send('response.function_call_arguments.delta', { ...place, delta: call.arguments });
      this.send('response.function_call_arguments.done', { ...place, arguments: call.arguments, name: call.name });
      this.send('response.output_item.done', { output_index: this.index, item: callItem(call, 'completed') });
      this.index += 1;
    }
    const status = endStatus(a);
    this.send(`response.${status}`, { response: responseObject(a, status) });
    this.close();
  }

  finishEarly() {}

  fail(error) {
    const response = { ...responseObject(this.a, 'failed'), error: { code: error.status === 429 ? 'rate_limit_exceeded' : 'server_error', message: error.message } };
    this.send('response.failed', { response });
    this.close();
  }
}

module.exports = { chatObject, responseObject, ChatStream, ResponseStream };
