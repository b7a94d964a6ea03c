'use strict';
// Reads the command line, opens the store and listens on a loopback address.

const { Store } = require('./store');
const { Model } = require('./model');
const { Turns } = require('./turns');
const { Server } = require('./server');
const { enable } = require('./defects');

const USAGE = `node main.js --port N --db FILE --model URL [options]
  --key NAME=KEY            a principal and its key; may be repeated
  --single-user             no keys: everything belongs to the one user of this machine
  --control-token TOKEN     turns the control API on
  --header NAME             a continuity header; may be repeated, the first wins (default: X-Thread-Id, then X-Hermes-Session-Id)
  --derivation WORD         content-v1, content-v2 (default) or none
  --compaction WORD         in-place (default) or rotate
  --echo WORD               tip (default) or alias: what answers name after a rotation
  --announces WORD          event (default) or finish-chunk: how a chat stream tells a new id
  --degraded WORD           refuse (default) or answer: what to do when the history cannot be read
  --turns WORD              reject (default) or serialize: a second turn of a busy session
  --environment WORD        per-session (default) or none: the server's own tools
  --context-chars N         history above this length is compressed (default 400000)
  --keep-responses N        how many responses are kept (default 1000)
  --max-body N              the largest request in bytes (default 8388608)
  --model-seconds N         how long the model may be silent (default 120)
  --cors-origin ORIGIN      a web page that may use the server; may be repeated
  --defect NAME             turns a mistake on, for tests (defects.md); may be repeated`;

const WORDS = {
  derivation: ['content-v2', 'content-v1', 'none'],
  compaction: ['in-place', 'rotate'],
  echo: ['tip', 'alias'],
  announces: ['event', 'finish-chunk'],
  degraded: ['refuse', 'answer'],
  turns: ['reject', 'serialize'],
  environment: ['per-session', 'none'],
};
const NUMBERS = { port: 0, 'context-chars': 400000, 'keep-responses': 1000, 'max-body': 8388608, 'model-seconds': 120 };
const LISTS = ['key', 'header', 'cors-origin', 'defect'];
const TEXTS = ['db', 'model', 'control-token'];

function usage(message) {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function readOptions(words) {
  const given = { key: [], header: [], 'cors-origin': [], defect: [], 'single-user': false };
  for (let i = 0; i < words.length; i += 1) {
    const name = words[i].replace(/^--/, '');
    if (name === 'single-user') given[name] = true;
    else if (LISTS.includes(name) || TEXTS.includes(name) || name in NUMBERS || name in WORDS) {
      i += 1;
      const value = words[i];
      if (value === undefined) usage(`--${name} needs a value.`);
      if (LISTS.includes(name)) given[name].push(value);
      else given[name] = value;
    } else usage(`There is no option ${words[i]}.`);
  }
  for (const name of ['db', 'model']) if (!given[name]) usage(`--${name} is missing.`);
  const number = (name) => {
    const value = name in given ? Number(given[name]) : NUMBERS[name];
    if (!Number.isInteger(value) || value < 0) usage(`--${name} is not a number.`);
    return value;
  };
  const options = {
    port: number('port'), db: given.db, model: given.model, controlToken: given['control-token'] || null, singleUser: given['single-user'],
    contextChars: number('context-chars'), keepResponses: number('keep-responses'), maxBody: number('max-body'), modelSeconds: number('model-seconds'),
    headers: given.header.length > 0 ? given.header : ['X-Thread-Id', 'X-Hermes-Session-Id'], origins: given['cors-origin'], defects: given.defect,
    keys: given.key.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1 || at === pair.length - 1) usage('A key has the form NAME=KEY.');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  };
  for (const [name, words] of Object.entries(WORDS)) {
    options[name] = name in given ? given[name] : words[0];
    if (!words.includes(options[name])) usage(`--${name} is one of ${words.join(', ')}.`);
  }
  if (options.singleUser && options.keys.length > 0) usage('--single-user and --key exclude each other.');
  if (!options.model.startsWith('http://')) usage('--model is a URL that begins with http://.');
  return options;
}

function main() {
  const options = readOptions(process.argv.slice(2));
  try {
    options.defects.forEach(enable);
  } catch (error) {
    usage(error.message);
  }
  const store = new Store(options.db, { keepResponses: options.keepResponses });
  try {
    store.open();
  } catch (error) {
    console.log(`ERROR the store cannot be opened yet: ${error.code || error.message}`);
  }
  const model = new Model(options.model, { seconds: options.modelSeconds });
  const turns = new Turns(store, model, options);
  const server = new Server({ store, turns, model, options });
  server.http.listen(options.port, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${server.http.address().port}`);
  });

  // Running turns come to their end; nobody can begin a new one.
  const stop = async () => {
    server.http.close();
    server.http.closeIdleConnections();
    const late = Date.now() + 8000;
    while (server.open > 0 && Date.now() < late) await new Promise((resolve) => setTimeout(resolve, 20));
    await store.close();
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

main();
