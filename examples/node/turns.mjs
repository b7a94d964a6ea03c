// How a turn runs, whichever endpoint it came from: find the session, wait for it, ask the model, commit, answer.
import { ApiError, CONTINUITY_HEADER, isSystem, mintId } from './formats.mjs';

/**
 * Runs one turn and returns the body of the answer. `turn` says what is asked:
 *   principal, headerId, slug, previousId   who asks, and what names the session (null if absent)
 *   system, input, request                  the system prompt, the new messages, the other fields of the model call
 *   store                                   false: nothing is written (SLUG-09)
 */
export async function runTurn(store, modelUrl, turn, answer, clientGone) {
  using locks = new DisposableStack(); // all released at the end of this function, however it ends
  const place = await enterSession(store, turn, locks);
  if (place.isResponseGone) console.info(`INFO slug ${turn.slug} goes on in ${place.id} without its last response`);
  clientGone.throwIfAborted(); // it may have hung up while the turn waited
  answer.begin(place.id);
  const history = place.lastTurn === null ? [] : store.history(place.lastTurn);
  // Only a chat turn without header stores system prompts; one that is sent replaces them for this turn (4.3).
  const past = turn.system.length ? history.filter((message) => !isSystem(message)) : history;
  if (turn.store) store.assertWritable();
  const request = { ...turn.request, messages: [...turn.system, ...past, ...turn.input] };
  const reply = await askModel(modelUrl, request, clientGone, (text) => answer.delta(text));
  clientGone.throwIfAborted(); // an abandoned turn is not stored at all (STREAM-03, HISTORY-16)
  const body = answer.complete(reply);
  // The commit comes before the end of the answer: what was answered is stored (DURABLE-02, HISTORY-03).
  const messages = [...turn.input, { role: 'assistant', content: reply.text }];
  if (turn.store) store.commitTurn(turn, place, messages, body.object === 'response' ? body : null);
  return body;
}

/** Waits until the turn may run (CONCUR-01), and says in which session and after which turn. */
async function enterSession(store, turn, locks) {
  // A new slug has no session to lock yet; its own lock lets simultaneous first turns share one (SLUG-12).
  if (turn.slug) locks.defer(await lock('slug', turn.principal, turn.slug));
  const mintedId = mintId('sess_');
  const { id } = findPlace(store, turn, mintedId);
  const release = locks.adopt(await lock('session', turn.principal, id), (end) => end());
  const place = findPlace(store, turn, mintedId); // again: other turns may have been stored meanwhile
  if (place.id !== id) release(); // the session went on, so this turn branches and holds up nobody (CONCUR-03)
  return place;
}

function findPlace(store, turn, mintedId) {
  const find = turn.previousId === null ? placeOfName : placeAfterResponse;
  const place = find(store, turn, mintedId);
  if (turn.headerId && turn.headerId !== place.id) throw sessionConflict(); // ECHO-11, SLUG-26
  return place;
}

function placeAfterResponse(store, { principal, previousId }, mintedId) {
  const response = store.response(principal, previousId);
  if (!response) { // SLUG-07
    throw new ApiError(404, 'previous_response_not_found', 'There is no such response.', 'previous_response_id');
  }
  const session = store.session(principal, response.session_id);
  // From an older response the turn branches into a session of its own; the line that went on stays (SLUG-20).
  const isLast = session.last_turn === response.turn;
  return { id: isLast ? session.id : mintedId, lastTurn: response.turn };
}

/** Where slug or header lead. An unknown name starts an empty session (HISTORY-04), no name a new one (DERIVE-15). */
function placeOfName(store, { principal, slug, headerId }, mintedId) {
  const slugged = slug ? store.sessionOfSlug(principal, slug) : undefined;
  const id = slugged?.id ?? headerId ?? mintedId;
  const session = slugged ?? store.session(principal, id);
  if (slug && session?.slug && session.slug !== slug) throw sessionConflict(); // the header's session has another slug
  // The slug is stored with its session, so only the log minds if its last response is gone (SLUG-03, SLUG-16).
  const isResponseGone = slugged?.last_response && !store.response(principal, slugged.last_response);
  return { id, lastTurn: session?.last_turn ?? null, isResponseGone };
}

const sessionConflict = () =>
  new ApiError(409, 'session_conflict', 'Header and body select two sessions.', CONTINUITY_HEADER);

const lastInLine = new Map(); // key -> promise that the last one in line has finished

/** Waits in the line of a key, first come, first served, and returns what ends the wait of the next one. */
async function lock(...names) {
  const key = JSON.stringify(names);
  const before = lastInLine.get(key);
  const { promise: finished, resolve: release } = Promise.withResolvers();
  lastInLine.set(key, finished);
  finished.then(() => lastInLine.get(key) === finished && lastInLine.delete(key));
  await before;
  return release;
}

// --- the model (4.7): one call for each turn, and every deviation is a failure that leaves nothing behind (HISTORY-08)

/** Returns { text, finishReason, usage }; a plain and a streamed call of one answer return the same (STREAM-04). */
async function askModel(baseUrl, request, clientGone, onText) {
  try {
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST', redirect: 'manual',
      // A new connection for each call: a reused one that the model has just closed would fail a healthy turn.
      headers: { 'Content-Type': 'application/json', Connection: 'close' },
      body: JSON.stringify(request),
      signal: AbortSignal.any([clientGone, AbortSignal.timeout(5 * 60_000)]),
    });
    if (response.status !== 200) throw modelFailure(response.status === 429 ? 429 : 502);
    return request.stream ? await readStream(response.body, onText) : readPlain(await response.json());
  } catch (error) {
    // A lost connection, a timeout, or not the JSON of a chat completion.
    throw error instanceof ApiError || clientGone.aborted ? error : modelFailure(502);
  }
}

const modelFailure = (status) => new ApiError(status, 'upstream_error', 'The model did not answer.');
const readPlain = ({ choices: [{ message, finish_reason: finishReason }], usage }) =>
  ({ text: message.content ?? '', finishReason, usage });

async function readStream(stream, onText) {
  let text = '';
  let finishReason = null;
  for await (const data of eventData(stream)) {
    if (data === '[DONE]') break;
    const { error, choices } = JSON.parse(data);
    if (error) throw modelFailure(502);
    const piece = choices?.[0]?.delta?.content ?? '';
    finishReason = choices?.[0]?.finish_reason ?? finishReason;
    text += piece;
    if (piece) onText(piece);
  }
  if (!finishReason) throw modelFailure(502); // the stream broke off
  return { text, finishReason };
}

/** The payloads of server-sent events. Split by hand: line readers also split at U+2028, which JSON may contain. */
async function* eventData(stream) {
  let rest = '';
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
  }
}
