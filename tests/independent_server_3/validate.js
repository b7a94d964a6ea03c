'use strict';
// Checks of requests against the OpenAPI document. A field that is null counts as absent.

const { ApiError, malformed } = require('./errors');
const { defect } = require('./defects');

const MAX_DEPTH = 128;
const TEXT_PARTS = ['text', 'input_text', 'output_text'];

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const given = (value) => value !== undefined && value !== null;
const lengthInPoints = (text) => (defect('slug-length-in-units') ? text.length : [...text].length);

function need(condition, param, message) {
  if (!condition) throw malformed(param, message);
}

// ---- bodies

function parseBody(bytes) {
  const invalid = (message) => new ApiError(400, 'invalid_json', message);
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: !defect('bad-utf8-replaced'), ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalid('The body is not UTF-8.');
  }
  if (!defect('depth-unchecked') && depthOf(text) > MAX_DEPTH) throw new ApiError(400, 'invalid_request', `The body is nested deeper than ${MAX_DEPTH} levels.`);
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw invalid('The body is not JSON.');
  }
  if (!isObject(body)) throw invalid('The body is not a JSON object.');
  if (!wellFormed(body)) throw invalid('A text of the body has half of a surrogate pair.');
  return body;
}

function depthOf(text) {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (quoted) {
      if (c === 92) i += 1;
      else if (c === 34) quoted = false;
    } else if (c === 34) quoted = true;
    else if (c === 123 || c === 91) deepest = Math.max(deepest, depth += 1);
    else if (c === 125 || c === 93) depth -= 1;
  }
  return deepest;
}

function wellFormed(value) {
  if (typeof value === 'string') return value.isWellFormed();
  if (Array.isArray(value)) return value.every(wellFormed);
  if (isObject(value)) return Object.entries(value).every(([key, one]) => key.isWellFormed() && wellFormed(one));
  return true;
}

// ---- fields that both endpoints have

function checkContent(content, where) {
  if (typeof content === 'string') return;
  need(Array.isArray(content), where, 'The content is neither a text nor a list of parts.');
  for (const part of content) {
    need(isObject(part) && typeof part.type === 'string', where, 'A part of the content has no type.');
    need(!TEXT_PARTS.includes(part.type) || typeof part.text === 'string', where, 'A text part has no text.');
  }
}

const inRange = (low, high) => (value) => typeof value === 'number' && value >= low && value <= high;
const whole = (low, high = Infinity) => (value) => Number.isInteger(value) && value >= low && value <= high;
const isText = (value) => typeof value === 'string';
const isFlag = (value) => typeof value === 'boolean';

const SAMPLING = {
  tool_choice: (value) => isText(value) || isObject(value),
  parallel_tool_calls: isFlag,
  temperature: inRange(0, 2),
  top_p: inRange(0, 1),
  max_tokens: whole(1),
  max_completion_tokens: whole(1),
  max_output_tokens: whole(1),
  n: whole(1, 128),
  seed: Number.isInteger,
  stop: (value) => isText(value) || (Array.isArray(value) && value.length <= 4 && value.every(isText)),
  user: isText,
  metadata: (value) => isObject(value) && Object.values(value).every((one) => isText(one) && [...one].length <= 512),
  stream: isFlag,
  store: isFlag,
};
const NOT_ON_CHAT = ['max_output_tokens', 'store'];
const NOT_ON_RESPONSES = ['max_tokens', 'max_completion_tokens', 'n', 'seed', 'stop'];

function checkShared(body, skipped) {
  need(isText(body.model) && body.model !== '', 'model', 'model is not a name.');
  for (const [name, holds] of Object.entries(SAMPLING)) {
    if (!skipped.includes(name) && given(body[name])) need(holds(body[name]), name, `${name} has a wrong type or is out of range.`);
  }
  if (given(body.tools)) {
    need(Array.isArray(body.tools), 'tools', 'tools is not a list.');
    for (const tool of body.tools) need(isObject(tool) && isText(tool.type) && tool.type !== '', 'tools', 'A tool has no type.');
  }
}

// ---- requests

function checkChat(body) {
  need(Array.isArray(body.messages), 'messages', 'messages is not a list.');
  for (const message of body.messages) checkMessage(message);
  checkShared(body, NOT_ON_CHAT);
  if (given(body.stream_options)) {
    need(isObject(body.stream_options), 'stream_options', 'stream_options is not an object.');
    const { include_usage: usage } = body.stream_options;
    need(!given(usage) || isFlag(usage), 'stream_options', 'include_usage is neither true nor false.');
  }
}

function checkMessage(message) {
  need(isObject(message), 'messages', 'A message is not an object.');
  const { role, content } = message;
  need(['system', 'developer', 'user', 'assistant', 'tool'].includes(role), 'messages', 'A message has an unknown role.');
  if (role !== 'assistant' || given(content)) checkContent(content, 'messages');
  if (role === 'tool') need(isText(message.tool_call_id), 'messages', 'A tool message has no tool_call_id.');
  if (role === 'assistant' && given(message.tool_calls)) {
    need(Array.isArray(message.tool_calls), 'messages', 'tool_calls is not a list.');
    for (const call of message.tool_calls) {
      need(isObject(call) && isText(call.id) && isObject(call.function), 'messages', 'A tool call has no id or no function.');
      need(isText(call.function.name) && isText(call.function.arguments), 'messages', 'A tool call has no name or no arguments.');
    }
  }
}

function checkResponse(body) {
  const { input } = body;
  if (typeof input === 'string') need(input !== '', 'input', 'input is empty.');
  else {
    need(Array.isArray(input) && input.length > 0, 'input', 'input is neither a text nor a list of items.');
    for (const item of input) checkItem(item);
    need(input.some((item) => item.role === 'user' || item.type === 'function_call_output'), 'input', 'input has neither a user message nor a result.');
  }
  need(!given(body.instructions) || isText(body.instructions), 'instructions', 'instructions is not a text.');
  checkShared(body, NOT_ON_RESPONSES);
  const previous = body.previous_response_id;
  need(!given(previous) || (isText(previous) && previous !== ''), 'previous_response_id', 'previous_response_id is not an id.');
  const slug = slugOf(body);
  if (slug !== null && given(previous)) {
    throw new ApiError(400, 'mutually_exclusive_parameters', 'Send conversation or previous_response_id, not both.', { param: 'previous_response_id' });
  }
}

function checkItem(item) {
  need(isObject(item), 'input', 'An item is not an object.');
  if (item.type === 'function_call_output') {
    need(isText(item.call_id), 'input', 'A result has no call_id.');
    checkContent(item.output, 'input');
  } else if (item.type === 'function_call') {
    need(isText(item.call_id) && isText(item.name) && isText(item.arguments), 'input', 'A call has no call_id, name or arguments.');
  } else {
    need(!given(item.type) || item.type === 'message', 'input', 'An item has a type that this server does not know.');
    need(['user', 'assistant', 'system', 'developer'].includes(item.role), 'input', 'A message has an unknown role.');
    checkContent(item.content, 'input');
  }
}

function slugOf(body) {
  let slug = body.conversation;
  if (!given(slug)) return null;
  if (isObject(slug)) slug = slug.id;
  need(isText(slug), 'conversation', 'conversation is neither a text nor an object with an id.');
  const length = lengthInPoints(slug);
  need(length >= 1 && length <= 256, 'conversation', 'conversation has less than 1 or more than 256 characters.');
  return defect('slug-end-trimmed') ? slug.trimEnd() || slug : slug;
}

function checkConversation(body) {
  need(!given(body.items) || (Array.isArray(body.items) && body.items.length === 0), 'items', 'Items are sent as the input of a response.');
  need(!given(body.metadata) || isObject(body.metadata), 'metadata', 'metadata is not an object.');
}

const isSessionId = (value) => typeof value === 'string' && /^[!-~]{1,256}$/.test(value);

module.exports = { parseBody, checkChat, checkResponse, checkConversation, slugOf, isSessionId, isObject, given, need };
