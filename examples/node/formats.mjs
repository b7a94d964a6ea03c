// The formats: errors, and for each of the two endpoints how a request becomes a turn and a reply becomes an answer.
import { randomBytes } from 'node:crypto';

export const CONTINUITY_HEADER = 'X-Hermes-Session-Id';

export const mintId = (prefix) => prefix + randomBytes(16).toString('hex'); // 128 random bits (ISOLATE-08)

/** The one kind of error that clients see (chapter 6). The message is for them: no trace, path or key (ISOLATE-14). */
export class ApiError extends Error {
  constructor(status, code, message, param = null) {
    super(message);
    const types = { 401: 'authentication_error', 404: 'not_found_error', 429: 'server_error' };
    const type = types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    Object.assign(this, { status, code, body: { error: { message, type, param, code } } });
  }
}

const invalid = (message, param) => new ApiError(400, 'invalid_request', message, param);

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
export const isSystem = ({ role }) => role === 'system' || role === 'developer';
const isString = (value) => typeof value === 'string';
const isText = (value) => isString(value) && value !== '';

const FIELD_TYPES = // of the fields that this server itself reads
  { model: 'string', stream: 'boolean', store: 'boolean', instructions: 'string', previous_response_id: 'string' };

/** The body without its null fields, which count as absent (chapter 2); 400 if a field has a wrong type. */
function checkedBody(body) {
  const present = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  const wrong = Object.keys(FIELD_TYPES).find((name) => name in present && typeof present[name] !== FIELD_TYPES[name]);
  if (wrong || !present.model) throw invalid('The field is missing or malformed.', wrong ?? 'model');
  return present;
}

const MODEL_FIELDS = ['model', 'stream', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'seed', 'stop',
  'frequency_penalty', 'presence_penalty', 'response_format', 'user']; // not `n`: a turn has one answer

/** The fields of the model call, but for the messages (4.7). */
function modelRequest(body) {
  const fields = Object.entries(body).filter(([name, value]) => MODEL_FIELDS.includes(name) && value !== undefined);
  return { stream: false, ...Object.fromEntries(fields) };
}

const ROLES = ['system', 'developer', 'user', 'assistant']; // not `tool`: tools of the client are not offered

/** One message as it is stored and sent to the model. The parts of both endpoints become those of chat (HISTORY-13). */
function checkedMessage(message, param) {
  const { type = 'message', role, content } = isObject(message) ? message : {};
  const hasContent = isString(content) || (Array.isArray(content) && content.every(isPart));
  if (type !== 'message' || !ROLES.includes(role) || !hasContent) throw invalid('A message is malformed.', param);
  return { role, content: isString(content) ? content : content.map(toChatPart) };
}

const isTextPart = ({ type }) => ['text', 'input_text', 'output_text'].includes(type);
const isPart = (part) => isObject(part) && isString(part.type) && (!isTextPart(part) || isString(part.text));
const toChatPart = (part) => (isTextPart(part) ? { type: 'text', text: part.text } : part);

// --- requests

function chatTurn(principal, headerId, rawBody) {
  const body = checkedBody(rawBody);
  if (!Array.isArray(body.messages)) throw invalid('messages is missing or malformed.', 'messages');
  const messages = body.messages.map((message) => checkedMessage(message, 'messages'));
  const lastUser = messages.findLast(({ role }) => role === 'user');
  if (!lastUser) throw invalid('There is no user message.', 'messages');
  const turn = { principal, headerId, slug: null, previousId: null, request: modelRequest(body), store: true };
  // With the header the history comes from the store (HISTORY-01); without, it is all in the body (DERIVE-16).
  if (!headerId) return { ...turn, system: [], input: messages };
  return { ...turn, system: messages.filter(isSystem), input: [lastUser] };
}

function responseTurn(principal, headerId, rawBody) {
  const body = checkedBody(rawBody);
  const slug = slugOf(body.conversation);
  const previousId = body.previous_response_id ?? null;
  if (slug !== null && previousId !== null) { // SLUG-08
    throw new ApiError(400, 'mutually_exclusive_parameters', 'Send only one of the two.', 'previous_response_id');
  }
  const items = isText(body.input) ? [{ role: 'user', content: body.input }] : body.input;
  if (!Array.isArray(items)) throw invalid('input is missing or malformed.', 'input');
  const messages = items.map((item) => checkedMessage(item, 'input'));
  if (!messages.some(({ role }) => role === 'user')) throw invalid('There is no user message.', 'input');
  // instructions and system items are only for this turn: they reach the model and are not stored (SLUG-21).
  const instructions = body.instructions ? [{ role: 'system', content: body.instructions }] : [];
  return {
    principal, headerId, slug, previousId,
    system: [...instructions, ...messages.filter(isSystem)],
    input: messages.filter((message) => !isSystem(message)),
    request: modelRequest({ ...body, max_tokens: body.max_output_tokens }),
    store: body.store ?? true, // SLUG-23
  };
}

/** A slug is any string; every character counts, and characters are code points (SLUG-14). */
function slugOf(conversation = null) {
  const slug = isObject(conversation) ? conversation.id : conversation;
  if (conversation === null || (isText(slug) && [...slug].length <= 256)) return slug;
  throw invalid('conversation is malformed.', 'conversation');
}

// --- answers

/** Answers one turn in a format (see below), with the body of `complete`, or with `delta`s and `finish` or `fail`. */
export class Answer {
  createdAt = Math.floor(Date.now() / 1000);
  messageId = mintId('msg_');
  eventCount = 0;

  constructor(format, res, turn) { Object.assign(this, { format, res, turn, id: mintId(format.idPrefix) }); }

  /** From here on every answer, also an error, names the session (ECHO-01, ECHO-08). */
  begin(sessionId) {
    this.session = { id: sessionId, rotated_from: null, degraded: false };
    this.res.setHeader(CONTINUITY_HEADER, sessionId);
  }

  complete(reply) { return { ...this.format.body(this, reply), session: this.session }; }

  delta(text) { this.res.write(this.#opening() + this.format.piece(this, text)); }

  finish(body) { this.res.end(this.#opening() + this.format.end(this, body)); }

  fail(error) { this.res.end(this.format.failure(this, error)); }

  /** Comes with the first piece: until then a failure still gets its own status (4.5). */
  #opening() {
    if (this.res.headersSent) return '';
    this.res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    return this.format.start(this);
  }
}

const serverSentEvent = (data) => `data: ${JSON.stringify(data)}\n\n`;
const DONE = 'data: [DONE]\n\n'; // once and last (STREAM-02)

const chatObject = ({ id, createdAt, turn }, object, choice) =>
  ({ id, object, created: createdAt, model: turn.request.model, choices: [{ index: 0, ...choice }] });
const chunk = (answer, delta, finishReason = null) =>
  chatObject(answer, 'chat.completion.chunk', { delta, finish_reason: finishReason });

export const chatFormat = {
  idPrefix: 'chatcmpl-',
  toTurn: chatTurn,
  body(answer, { text, finishReason, usage }) {
    const choice = { message: { role: 'assistant', content: text }, finish_reason: finishReason };
    return { ...chatObject(answer, 'chat.completion', choice), usage };
  },
  start: (answer) => serverSentEvent(chunk(answer, { role: 'assistant', content: '' })),
  piece: (answer, content) => serverSentEvent(chunk(answer, { content })),
  end: (answer, { choices: [{ finish_reason: finishReason }], session }) =>
    serverSentEvent({ ...chunk(answer, {}, finishReason), session }) + DONE,
  failure: (answer, error) => serverSentEvent(error.body) + DONE,
};

const responseObject = ({ id, createdAt, turn: { request, slug, previousId, store } }, status, output) => ({
  id, object: 'response', created_at: createdAt, status, model: request.model, output, error: null, store,
  tools: [], tool_choice: 'auto', parallel_tool_calls: false, // OpenAI's clients expect them
  previous_response_id: previousId, conversation: slug ? { id: slug } : null,
});

const outputMessage = ({ messageId }, status, content) =>
  ({ id: messageId, type: 'message', role: 'assistant', status, content });
const textPart = (text) => ({ type: 'output_text', text, annotations: [] });

function responseEvent(answer, name, data) {
  const event = { type: `response.${name}`, sequence_number: answer.eventCount++, ...data };
  return `event: ${event.type}\n${serverSentEvent(event)}`;
}

const textEvent = (answer, name, data) =>
  responseEvent(answer, name, { output_index: 0, content_index: 0, item_id: answer.messageId, ...data });

export const responseFormat = {
  idPrefix: 'resp_',
  toTurn: responseTurn,
  body: (answer, { text }) =>
    responseObject(answer, 'completed', [outputMessage(answer, 'completed', [textPart(text)])]),
  start(answer) {
    const response = responseObject(answer, 'in_progress', []);
    return responseEvent(answer, 'created', { response })
      + responseEvent(answer, 'in_progress', { response })
      + responseEvent(answer, 'output_item.added', { output_index: 0, item: outputMessage(answer, 'in_progress', []) })
      + textEvent(answer, 'content_part.added', { part: textPart('') });
  },
  piece: (answer, delta) => textEvent(answer, 'output_text.delta', { delta }),
  end(answer, response) {
    const [item] = response.output;
    const [part] = item.content;
    return textEvent(answer, 'output_text.done', { text: part.text })
      + textEvent(answer, 'content_part.done', { part })
      + responseEvent(answer, 'output_item.done', { output_index: 0, item })
      + responseEvent(answer, 'completed', { response });
  },
  failure(answer, { code, message }) { // STREAM-06
    const response = { ...responseObject(answer, 'failed', []), error: { code, message } };
    return responseEvent(answer, 'failed', { response });
  },
};
