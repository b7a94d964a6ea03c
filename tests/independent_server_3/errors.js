'use strict';
// The errors that a client may see. Everything else becomes a 500 without details.

const TYPES = {
  400: 'invalid_request_error', 401: 'authentication_error', 403: 'permission_error', 404: 'not_found_error',
  405: 'invalid_request_error', 409: 'invalid_request_error', 413: 'invalid_request_error', 415: 'invalid_request_error',
  422: 'invalid_request_error', 429: 'server_error', 500: 'server_error', 502: 'server_error', 503: 'server_error', 504: 'server_error',
};

class ApiError extends Error {
  constructor(status, code, message, { param = null, type, headers } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.type = type || TYPES[status] || 'invalid_request_error';
    this.headers = headers || {};
  }

  body() {
    return { error: { code: this.code, type: this.type, param: this.param, message: this.message } };
  }
}

// The store cannot be read or written at the moment.
class StoreDown extends Error {}

// The client hung up; nobody reads the answer.
class ClientGone extends Error {}

const malformed = (param, message) => new ApiError(422, 'invalid_request', message, { param });
const unavailable = (message = 'The history is unavailable at the moment. Try again later.') =>
  new ApiError(503, 'history_unavailable', message);
const notFound = (what, param) => new ApiError(404, `${what}_not_found`, `There is no such ${what.replace(/_/g, ' ')}.`, { param });

module.exports = { ApiError, StoreDown, ClientGone, malformed, unavailable, notFound };
