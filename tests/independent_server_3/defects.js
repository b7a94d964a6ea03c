'use strict';
// Switches for tests: each turns one known mistake on. All are off unless the command line names them; defects.md describes them.

const NAMES = new Set(`
  abandoned-call-stays all-last-user-messages allow-is-short answer-before-disk bad-utf8-replaced body-before-key branch-from-compressed
  branch-takes-slug broken-stream-without-end cache-loses-slug client-names-response compression-parts-tool-pair conversation-leaves-session
  cursor-by-second cut-off-answer-not-kept degraded-not-marked delete-brings-back delete-leaves-replays delete-leaves-responses
  delete-response-takes-slug delete-takes-branches deleted-response-continues depth-unchecked done-is-enough edited-body-added
  empty-answer-not-kept empty-header-refused empty-prompt-not-in-id error-shows-path events-of-calls-not-counted evict-cuts-history
  failed-response-kept failed-summary-drops failed-turn-keeps-question failed-write-stays-in-memory few-locks files-by-session-name
  files-lost-at-restart files-of-failed-turn files-without-principal finish-before-disk foreign-cursor foreign-response-differs
  hang-up-keeps-session hang-up-stores-half header-and-response-mixed header-prompt-kept id-of-ascii-json id-of-composed-text id-with-user
  images-not-kept instructions-stay kept-prompt-not-sent key-by-prefix key-for-all-principals key-for-all-sessions key-ignores-prompt
  last-by-id last-chunk-other-id late-prompt-in-id letters-cut-in-two line-separator-ends-line list-by-id lock-without-principal
 model-error-shown  null-is-false one-stream-at-a-time path-decoded-twice released-late replays-lost-at-restart
  restart-loses-bound-slug restart-loses-summary restart-mixes-slugs restart-normalises-text results-trimmed rotation-drops-slug
  rotation-header-old same-key-at-once second-header-wins slug-end-trimmed slug-fault-is-new slug-in-plain-object slug-is-session-id
  slug-length-in-units slug-race stream-not-exposed stream-stored-unfinished summary-and-all summary-swallows-message tip-follows-any-child
  tip-one-step tool-pieces-to-last-call unstored-turn-compresses unstored-turn-names-slug window-of-turns
`.trim().split(/\s+/));

const active = new Set();

const defect = (name) => active.has(name);

function enable(name) {
  if (!NAMES.has(name)) throw new Error(`There is no defect ${name}.`);
  active.add(name);
}

module.exports = { defect, enable };
