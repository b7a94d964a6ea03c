'use strict';
// Compression: the older turns of a long conversation become one summary, which the model writes. The last turn stays as it is.

const { ApiError } = require('./errors');
const { lengthOf, pairCalls } = require('./messages');
const { defect } = require('./defects');

const ORDER = 'Summarize the conversation above in a few sentences. Keep names, numbers, decisions and open questions. Write only the summary.';
const HEADING = 'Summary of the earlier conversation:\n';

// Which turns are summarised (`old`) and which are kept, or null if nothing is to be done. A kept part begins with a message of
// the user, so that no tool call is parted from its result.
function chooseCompression(options, session, before, input) {
  if (!session.compress && lengthOf(before.flat()) < options.contextChars) return null;
  let at = before.length - 1;
  if (!defect('compression-parts-tool-pair')) while (at > 0 && (before[at][0] || {}).role !== 'user') at -= 1;
  if (at > 0 && !isOnlySummary(before.slice(0, at))) return { old: before.slice(0, at), keep: before.slice(at) };
  if (before.length === 0 || (input[0] && input[0].role === 'tool') || isOnlySummary(before)) return null;
  return { old: before, keep: [] };
}

const isOnlySummary = (turns) => turns.length === 1 && turns[0].length === 1 && turns[0][0].role === 'system';

// The message that stands for the old turns, or null if the model did not write one.
async function summarise(model, name, old, more, signal) {
  try {
    const messages = [...pairCalls([...old.flat(), ...more]), { role: 'user', content: ORDER }];
    const reply = await model.ask({ model: name, stream: false, messages }, { signal });
    if (reply.text.trim() === '') return null;
    return { role: 'system', content: HEADING + reply.text };
  } catch (error) {
    if (!(error instanceof ApiError) || signal.aborted) throw error;
    console.log('WARN the model wrote no summary; the turn runs with the whole history');
    return null;
  }
}

module.exports = { chooseCompression, summarise };
