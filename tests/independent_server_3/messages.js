'use strict';
// Messages in the form of chat completions: their texts, derived ids, turns, tool calls and results.

const crypto = require('node:crypto');
const { defect } = require('./defects');

const sha256 = (text) => crypto.createHash('sha256').update(text, 'utf8').digest('hex');
const TEXT_PARTS = new Set(['text', 'input_text', 'output_text']);
const NO_RESULT = 'There is no result: the client did not return one.';

const isPrompt = (message) => message.role === 'system' || message.role === 'developer';

function textOf(message) {
  if (typeof message.content === 'string') return message.content;
  if (!Array.isArray(message.content)) return '';
  return message.content.filter((part) => TEXT_PARTS.has(part.type) && part.text !== '').map((part) => part.text).join('\n');
}

// The id of a conversation whose client sends none: chapter 4.9.
function deriveId(messages, algorithm, user) {
  const at = messages.findIndex((message) => message.role === 'user');
  let first = at < 0 ? '' : textOf(messages[at]);
  let prompts;
  if (algorithm === 'content-v1') prompts = messages.filter((message) => message.role === 'system');
  else prompts = messages.slice(0, at < 0 || defect('late-prompt-in-id') ? messages.length : at).filter(isPrompt);
  let texts = prompts.map(textOf);
  if (defect('empty-prompt-not-in-id')) texts = texts.filter((text) => text !== '');
  if (defect('id-of-composed-text')) [first, texts] = [first.normalize('NFC'), texts.map((text) => text.normalize('NFC'))];
  const prompt = texts.join('\n');
  if (algorithm === 'content-v1') return `api-${sha256(`${prompt}\n${first}`).slice(0, 16)}`;
  let json = JSON.stringify([prompt, first]);
  if (defect('id-of-ascii-json')) json = json.replace(/[\u0080-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
  if (defect('id-with-user') && typeof user === 'string') json += user;
  return `api2-${sha256(json).slice(0, 32)}`;
}

// Splits a chat body into the system prompt, the older messages and the new input.
function splitChat(messages) {
  const prompt = messages.filter(isPrompt);
  const talk = messages.filter((message) => !isPrompt(message));
  let start = talk.length;
  while (start > 0 && talk[start - 1].role === 'tool') start -= 1;
  if (start === talk.length) {
    start = talk.findLastIndex((message) => message.role === 'user');
    if (start < 0) return { prompt, talk, older: talk, input: [] };
    if (defect('all-last-user-messages')) while (start > 0 && talk[start - 1].role === 'user') start -= 1;
    return { prompt, talk, older: talk.slice(0, start), input: defect('all-last-user-messages') ? talk.slice(start) : [talk[start]], rest: talk.slice(start) };
  }
  return { prompt, talk, older: talk.slice(0, start), input: talk.slice(start), rest: talk.slice(start) };
}

// The messages of a body as turns; each begins with a message of the user.
function splitTurns(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === 'user' || turns.length === 0) turns.push([]);
    turns[turns.length - 1].push(message);
  }
  return turns;
}

// The ids of the calls that still wait for their results.
function openCalls(messages) {
  const open = new Set();
  for (const message of messages) {
    if (message.role === 'user') open.clear();
    else if (message.role === 'tool') open.delete(message.tool_call_id);
    else for (const call of message.tool_calls || []) open.add(call.id);
  }
  return open;
}

// True if each of the results in `input` answers a call that is open at this point.
function resultsFit(history, input) {
  const open = openCalls(history);
  for (const message of input) {
    if (message.role === 'user') open.clear();
    else if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) return false;
    } else for (const call of message.tool_calls || []) open.add(call.id);
  }
  return true;
}

// What the model gets: each call followed by its result, each result with its call, and no call id twice.
function pairCalls(messages) {
  if (defect('abandoned-call-stays')) return messages;
  const items = [];
  let open = new Map();
  for (const message of messages) {
    if (message.role === 'tool') {
      const slot = open.get(message.tool_call_id);
      if (slot) slot.result = message;
      open.delete(message.tool_call_id);
      continue;
    }
    if (message.role === 'user') open = new Map();
    const slots = (message.tool_calls || []).map((call) => ({ call, result: null }));
    for (const slot of slots) open.set(slot.call.id, slot);
    items.push({ message, slots });
  }
  const used = new Set();
  const view = [];
  for (const { message, slots } of items) {
    if (slots.length === 0) {
      const { tool_calls: none, ...rest } = message;
      view.push(rest);
      continue;
    }
    const named = slots.map((slot) => {
      let id = slot.call.id;
      for (let n = 2; used.has(id); n += 1) id = `${slot.call.id}_${n}`;
      used.add(id);
      return { ...slot, id };
    });
    view.push({ ...message, tool_calls: named.map(({ call, id }) => ({ type: 'function', ...call, id })) });
    for (const { result, id } of named) view.push({ ...(result || { role: 'tool', content: NO_RESULT }), tool_call_id: id });
  }
  return view;
}

// What two copies of one message have in common, whatever a client adds to its own.
function essence(message) {
  const calls = (message.tool_calls || []).map((call) => [call.id, call.function.name, call.function.arguments]);
  return JSON.stringify([message.role, message.content || '', calls, message.tool_call_id || '']);
}

const sameMessages = (a, b) => a.length === b.length && a.every((message, index) => essence(message) === essence(b[index]));

// A running hash, so that more messages can be added to those that were hashed before.
const hashMessages = (start, messages) => messages.reduce((hash, message) => sha256(hash + essence(message)), start);

const lengthOf = (messages) => messages.reduce((total, message) => total + JSON.stringify(message.content || '').length + JSON.stringify(message.tool_calls || '').length, 0);

// ---- the forms of /v1/responses

function partOf(part) {
  if (TEXT_PARTS.has(part.type)) return { type: 'text', text: part.text };
  if (part.type === 'input_image') {
    const url = typeof part.image_url === 'string' ? { url: part.image_url } : part.image_url;
    return { type: 'image_url', image_url: { ...url, ...(part.detail ? { detail: part.detail } : {}) } };
  }
  return part;
}

const contentOf = (content) => (Array.isArray(content) ? content.map(partOf) : content);

// The input of a response as messages; its system items come apart.
function readInput(input, instructions) {
  const prompt = [];
  const messages = [];
  if (typeof instructions === 'string' && instructions !== '') prompt.push({ role: 'system', content: instructions });
  if (typeof input === 'string') return { prompt, input: [{ role: 'user', content: input }] };
  let callsGoOn = false;
  for (const item of input) {
    if (item.type === 'function_call') {
      const call = { id: item.call_id, type: 'function', function: { name: item.name, arguments: item.arguments } };
      if (callsGoOn) messages[messages.length - 1].tool_calls.push(call);
      else messages.push({ role: 'assistant', content: null, tool_calls: [call] });
      callsGoOn = true;
      continue;
    }
    callsGoOn = false;
    if (item.type === 'function_call_output') messages.push({ role: 'tool', tool_call_id: item.call_id, content: contentOf(item.output) });
    else (isPrompt(item) ? prompt : messages).push({ role: item.role, content: contentOf(item.content) });
  }
  return { prompt, input: messages };
}

function chatTools(tools) {
  return (tools || []).map((tool) => {
    if (tool.type !== 'function' || tool.function) return tool;
    const { type, ...rest } = tool;
    return { type, function: rest };
  });
}

const chatChoice = (choice) => (choice && choice.type === 'function' && choice.name ? { type: 'function', function: { name: choice.name } } : choice);

module.exports = {
  sha256, deriveId, splitChat, splitTurns, openCalls, resultsFit, pairCalls, sameMessages, hashMessages, lengthOf, readInput, chatTools, chatChoice, isPrompt,
};
