class ApiError(Exception):
    def __init__(self, status, message, code, type_='invalid_request_error', param=None, headers=None):
        super().__init__(message)
        self.status, self.message, self.code, self.type, self.param = status, message, code, type_, param
        self.headers = dict(headers or {})

    def body(self):
        return {'error': {'code': self.code, 'type': self.type, 'param': self.param, 'message': self.message}}


class StoreError(Exception):
    """The store cannot be read or written."""


def bad(message, param=None, code='invalid_request', status=400):
    return ApiError(status, message, code, param=param)


def not_found(what, param):
    return ApiError(404, f'No {what.replace("_", " ")} goes by that id here.', what + '_not_found', 'not_found_error', param)


def unavailable():
    return ApiError(503, 'The conversation store is temporarily out of reach; nothing was changed.', 'history_unavailable', 'server_error')


def upstream(status=502, message='The language model could not complete the request.', type_='server_error', code='upstream_error'):
    return ApiError(status, message, code, type_)


def busy():
    return ApiError(409, 'One turn at a time, please: this conversation is still being answered.', 'session_busy', 'conflict_error', headers={'Retry-After': '1'})


def conflict():
    return ApiError(409, 'The session header and the body point at different conversations.', 'session_conflict', param='X-Hermes-Session-Id')
