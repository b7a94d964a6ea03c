'use strict';
// One turn of a session at a time. A second one waits for its place in the queue, or is refused.

const { ApiError, ClientGone } = require('./errors');
const { defect } = require('./defects');

const busy = () => new ApiError(409, 'session_busy', 'Another turn of this session is running.', { type: 'conflict_error', headers: { 'retry-after': '1' } });

class Locks {
  constructor({ wait }) {
    this.wait = wait;
    this.held = new Map(); // key to {hold, queue}
  }

  // `hold` is the turn that asks; `hold.lock` is set when it has its turn.
  acquire(key, hold, signal) {
    const place = this.held.get(key);
    if (!place) {
      if (defect('few-locks') && this.held.size >= 16) this.held.delete(this.held.keys().next().value);
      this.held.set(key, { hold, queue: [] });
      hold.locks.add(key);
      return Promise.resolve();
    }
    if (!this.wait) return Promise.reject(busy());
    return new Promise((resolve, reject) => {
      const waiter = { hold, resolve };
      place.queue.push(waiter);
      const leave = () => {
        const at = place.queue.indexOf(waiter);
        if (at >= 0) place.queue.splice(at, 1);
        reject(new ClientGone());
      };
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  release(key, hold) {
    const place = this.held.get(key);
    hold.locks.delete(key);
    if (!place || place.hold !== hold) return;
    const next = place.queue.shift();
    if (!next) {
      this.held.delete(key);
      return;
    }
    place.hold = next.hold;
    next.hold.locks.add(key);
    next.resolve();
  }

  // Takes the lock from the turn that has it, because its session was deleted.
  free(key) {
    const place = this.held.get(key);
    if (!place) return;
    place.hold.controller.abort(new ApiError(409, 'session_conflict', 'The session was deleted while this turn was running.'));
    this.release(key, place.hold);
  }
}

module.exports = { Locks };
