'use strict';
// The tools of the server: small text files, of which each session has its own. They are stored with the turn that writes them.

const { defect } = require('./defects');

const describe = (name, description, fields) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', required: fields, properties: Object.fromEntries(fields.map((field) => [field, { type: 'string' }])) } },
});

const OWN_TOOLS = [
  describe('write_file', 'Writes a text file of this conversation.', ['path', 'content']),
  describe('read_file', 'Reads a text file of this conversation.', ['path']),
];

function runOwn(store, p, turn, call) {
  let fields = null;
  try {
    fields = JSON.parse(call.arguments);
  } catch { /* answered below */ }
  if (!fields || typeof fields.path !== 'string') return 'Error: the arguments have no path.';
  const owner = defect('files-by-session-name') ? turn.target.id : turn.line;
  const key = JSON.stringify([owner, fields.path]);
  const space = defect('files-without-principal') ? '' : p;
  if (call.name === 'write_file') {
    if (typeof fields.content !== 'string') return 'Error: the arguments have no content.';
    const file = { line: defect('files-by-session-name') ? null : turn.line, content: fields.content };
    turn.files.set(key, file);
    if (defect('files-without-principal')) store.put('', 'files', JSON.stringify([turn.target.id, fields.path]), file);
    return `Wrote ${fields.path}.`;
  }
  if (turn.files.has(key)) return turn.files.get(key).content;
  const content = turn.degraded ? null : store.file(space, defect('files-without-principal') ? JSON.stringify([turn.target.id, fields.path]) : key);
  return content === null ? 'Error: there is no such file.' : content;
}

module.exports = { OWN_TOOLS, runOwn };
