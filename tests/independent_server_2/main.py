#!/usr/bin/env python3
"""The gateway: HTTP, keys, routes."""
import asyncio
import hmac
import json
import logging
import re
import signal
import sys
from urllib.parse import parse_qs, unquote_plus, unquote_to_bytes

from aiohttp import web, web_protocol

import answers
import config
import convert
from config import bug
from errors import ApiError, StoreError, bad, not_found, unavailable
from locks import Locks
from store import Store, mint
from turns import Runner, Turn

HEADER = 'X-Hermes-Session-Id'
SESSION_ID = re.compile(r'[!-~]{1,256}\Z')
JSON_TYPE = re.compile(r'application/([\w.+-]+\+)?json\s*(;.*)?\Z', re.I)
log = logging.getLogger('gateway')


class Sse:
    def __init__(self, gateway, request, headers, held):
        self.request, self.held, self.rich = request, held, gateway.args.sse == 'rich'
        self.drop = gateway.args.hangup == 'drop'
        self.response = web.StreamResponse(headers={'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no', **headers})
        if not bug('cors-stream'):
            self.response.headers.update(gateway.cors())
        self.gone, self.n = False, 0

    async def start(self):
        try:
            await self.response.prepare(self.request)
        except ConnectionError:
            if bug('hangup-before-head'):
                self.held.keys.clear()
                raise
            self.gone = True
        if self.rich:
            await self.write(b': stream of one turn\n\n')

    async def write(self, data):
        if self.gone:
            return
        try:
            await self.response.write(data)
        except ConnectionError:
            self.gone = True
            if self.drop:
                raise

    async def send(self, data, event=None):
        lines = f'id: {self.n}\n' if self.rich else ''
        self.n += 1
        if event:
            lines += f'event: {event}\n'
        await self.write((lines + 'data: ' + (data if isinstance(data, str) else json.dumps(data)) + '\n\n').encode())

    async def end(self):
        if not self.gone:
            try:
                await self.response.write_eof()
            except ConnectionError:
                pass
        return self.response


class Gateway:
    def __init__(self, args):
        self.args = args
        self.store = Store(args.db, args.keep_responses)
        self.locks = Locks(args.turns == 'reject')
        self.runner = Runner(args, self.store, self.locks)
        self.routes = [
            ('/v1/chat/completions', {'POST': self.chat}),
            ('/v1/responses', {'POST': self.respond}),
            ('/v1/responses/{}', {'GET': self.get_response, 'DELETE': self.delete_response}),
            ('/v1/conversations', {'POST': self.create_conversation}),
            ('/v1/conversations/{}', {'GET': self.get_conversation, 'DELETE': self.delete_conversation}),
            ('/v1/sessions', {'GET': self.list_sessions}),
            ('/v1/sessions/{}', {'GET': self.get_session, 'DELETE': self.delete_session}),
            ('/v1/sessions/{}/messages', {'GET': self.list_messages}),
            ('/v1/models', {'GET': self.models}),
            ('/v1/capabilities', {'GET': self.capabilities}),
            ('/health', {'GET': self.health}),
        ]
        if args.control_token:
            self.routes += [('/conformance/v1/' + n, {'POST': getattr(self, 'control_' + n)}) for n in ('evict', 'compress', 'fault', 'fork', 'link', 'lineage')]
        self.routes = [(pattern.split('/')[1:], methods) for pattern, methods in self.routes]

    # -- requests and answers -----------------------------------------------------------------------
    def cors(self):
        if not self.args.cors:
            return {}
        return {'Access-Control-Allow-Origin': self.args.cors, 'Access-Control-Expose-Headers': f'{HEADER}, X-Session-Degraded, Retry-After, X-Request-Id'}

    def reply(self, body, status=200, headers=None):
        r = web.Response(body=json.dumps(body).encode(), status=status,
                         headers={'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Request-Id': mint('req-', 8), **(headers or {}), **self.cors()})
        if status == 200:
            r.enable_chunked_encoding()
        elif self.args.close_errors == 'yes':
            r.force_close()
        return r

    async def handle(self, request):
        session = []
        try:
            return await self.dispatch(request, session)
        except ApiError as e:
            headers = dict(e.headers)
            if session and session[0]:
                headers[HEADER] = session[0]
            return self.reply(e.body(), e.status, headers)
        except StoreError:
            return self.reply(unavailable().body(), 503, {HEADER: session[0]} if session and session[0] else None)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception('defect')
            return self.reply(ApiError(500, 'Something broke on our side.', 'internal_error', 'server_error').body(), 500)

    async def dispatch(self, request, session):
        raw, _, query = request.raw_path.partition('?')
        segments = raw.split('/')[1:]
        if request.method == 'OPTIONS':
            return self.preflight(segments)
        if segments != ['health']:
            request['principal'] = self.authenticate(request)
        if segments[:2] == ['conformance', 'v1']:
            token = request.headers.getall('X-Conformance-Token', [])
            if not self.args.control_token or len(token) != 1 or not same(token[0], self.args.control_token) or request.remote not in ('127.0.0.1', '::1'):
                raise ApiError(404, 'There is nothing at this path.', 'not_found', 'not_found_error')
        methods, params = self.route(segments)
        if request.method not in methods:
            raise ApiError(405, 'This path cannot be used with that method.', 'method_not_allowed', headers={'Allow': ', '.join(methods)})
        request['query'], request['session'] = query, session
        return await methods[request.method](request, *params)

    def route(self, segments):
        for pattern, methods in self.routes:
            if len(pattern) == len(segments) and all(p == '{}' and s or p == s for p, s in zip(pattern, segments)):
                try:
                    if bug('path-plus'):
                        return methods, [unquote_plus(s) for p, s in zip(pattern, segments) if p == '{}']
                    return methods, [unquote_to_bytes(s).decode() for p, s in zip(pattern, segments) if p == '{}']
                except UnicodeDecodeError:
                    break
        raise ApiError(404, 'There is nothing at this path.', 'not_found', 'not_found_error')

    def preflight(self, segments):
        methods = {}
        try:
            methods, _ = self.route(segments)
        except ApiError:
            pass
        headers = {'Allow': ', '.join([*methods, 'OPTIONS'])}
        if self.args.cors:
            headers.update(self.cors())
            headers['Access-Control-Allow-Methods'] = ', '.join(methods) or 'GET'
            headers['Access-Control-Allow-Headers'] = f'Authorization, Content-Type, Idempotency-Key, {HEADER}'
            headers['Access-Control-Max-Age'] = '600'
        return web.Response(status=204, headers=headers)

    def authenticate(self, request):
        if not self.args.keys:
            return 'owner'
        given = request.headers.getall('Authorization', [])
        if len(given) == 1 and given[0][:7].lower() == 'bearer ':
            for key, name in self.args.keys.items():
                if same(given[0][7:], key):
                    return name
        raise ApiError(401, 'That key opens nothing here.', 'invalid_api_key', 'authentication_error')

    async def body(self, request):
        too_large, data = False, bytearray()
        async for piece in request.content.iter_any():
            if len(data) + len(piece) > self.args.max_body:
                too_large = True
            if not too_large:
                data += piece
        if too_large:
            raise ApiError(413, f'Requests end at {self.args.max_body} bytes.', 'request_too_large')
        type_ = request.headers.get('Content-Type')
        if type_ is not None and not JSON_TYPE.match(type_):
            raise ApiError(415, 'Only JSON is spoken here.', 'unsupported_media_type', param='Content-Type')
        try:
            d = json.loads(data.decode('utf-8'), parse_constant=refuse_constant)
            if depth(d) > 100:
                raise bad('the body is nested too deeply')
            json.dumps(d, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            raise bad('the body is no valid JSON', None, 'invalid_json') from None
        if not isinstance(d, dict):
            raise bad('the body has to be a JSON object')
        return {k: v for k, v in d.items() if v is not None}

    def session_header(self, request):
        values = request.headers.getall(HEADER, [])
        if len(values) > 1:
            raise bad(f'{HEADER} was sent more than once', HEADER, 'invalid_session_id')
        value = values[0].strip(' \t') if values else ''
        if value and not SESSION_ID.match(value):
            raise bad(f'{HEADER} takes 1 to 256 visible ASCII characters', HEADER, 'invalid_session_id')
        return value or None

    # -- turns ----------------------------------------------------------------------------------------
    async def chat(self, request):
        return await self.turn('chat', request)

    async def respond(self, request):
        return await self.turn('responses', request)

    async def turn(self, kind, request):
        body = await self.body(request)
        header = self.session_header(request)
        key = request.headers.get('Idempotency-Key') or None
        if key is not None and len(key) > 256:
            raise bad('an idempotency key has 256 characters at most', 'Idempotency-Key')
        check_fields(kind, body)
        t = Turn(kind, request['principal'], body, header, key)
        if header and bug('id-255'):
            t.header, t.echo = header[:255], header
        held = self.locks.hold()
        events = None
        try:
            try:
                replay = await self.runner.prepare(t, held)
            finally:
                if t.known and t.sid:
                    request['session'].append(t.rotated_from or self.runner.public_id(t))
            if replay is not None:
                return await self.replay(request, t, replay, held)
            if t.stream:
                return await self.stream(request, t, held)
            answer = await self.runner.model.plain(self.runner.payload(t))
            result = self.result(t, answer, mint('msg_', 12))
            self.runner.finish(t, answer, result)
            return self.reply(result, headers=self.turn_headers(t, self.runner.public_id(t)))
        finally:
            held.free()

    def turn_headers(self, t, sid):
        return {HEADER: sid, 'X-Session-Degraded': t.degraded} if t.degraded else {HEADER: sid}

    def result(self, t, answer, message_id):
        session = self.runner.session_object(t)
        if t.kind == 'chat':
            return answers.chat_object(t, answer, session)
        status = 'incomplete' if answer.finish == 'length' else 'completed'
        return answers.response_object(t, status, answers.output_items(answer, message_id), answer, session)

    def events(self, t, sse):
        return (answers.ChatEvents if t.kind == 'chat' else answers.ResponseEvents)(t, sse, self.args.announces)

    async def replay(self, request, t, result, held):
        headers = {HEADER: result['session']['id'], 'X-Replayed': 'true'}
        if not t.stream:
            return self.reply(result, headers=headers)
        sse = Sse(self, request, headers, held)
        await sse.start()
        if bug('replay-new-id'):
            result = {**result, 'id': t.id}
        await self.events(t, sse).replay(result)
        return await sse.end()

    async def stream(self, request, t, held):
        answer = answers_model()
        pieces = self.runner.model.stream(self.runner.payload(t), answer)
        try:
            first = await anext(pieces, None)      # a failure before it is an ordinary error
            sse = Sse(self, request, self.turn_headers(t, self.runner.early_id(t)), held)
            await sse.start()
            events = self.events(t, sse)
            try:
                await events.head()
                piece = first
                while piece is not None:
                    await (events.text if piece[0] == 'text' else events.call)(piece[1])
                    piece = await anext(pieces, None)
                result = self.result(t, answer, getattr(events, 'message_id', ''))
                if bug('stream-commit-late'):
                    await events.tail(result)
                    try:
                        self.runner.finish(t, answer, result)
                    except StoreError:
                        log.error('turn %s was not stored', t.id)
                    return await sse.end()
                self.runner.finish(t, answer, result)
            except ApiError as e:
                await events.fail(e)
            except StoreError:
                await events.fail(unavailable())
            else:
                await events.tail(result)
            return await sse.end()
        finally:
            await pieces.aclose()

    # -- what is stored ---------------------------------------------------------------------------------
    async def get_response(self, request, rid):
        r = self.store.response(request['principal'], rid)
        if r is None:
            raise not_found('response', 'response_id')
        return self.reply(json.loads(r['body']))

    async def delete_response(self, request, rid):
        if self.store.response(request['principal'], rid) is None and not bug('foreign-delete') or not self.store.delete_response(request['principal'], rid):
            raise not_found('response', 'response_id')
        return self.reply({'object': 'response', 'id': rid, 'deleted': True})

    def conversation(self, row):
        metadata = json.loads(row['metadata']) if row['metadata'] else {}
        return {'object': 'conversation', 'id': row['id'], 'metadata': metadata, 'created_at': row['created']}

    async def create_conversation(self, request):
        body = await self.body(request)
        if body.get('items'):
            raise bad('items are sent as the input of a response', 'items')
        if not isinstance(body.get('items', []), list):
            raise bad('items has to be a list', 'items')
        metadata = body.get('metadata')
        if metadata is not None and not isinstance(metadata, dict):
            raise bad('metadata has to be an object', 'metadata')
        cid = mint('conv-', 18)
        created = self.store.create_conversation(request['principal'], cid, metadata)
        return self.reply({'object': 'conversation', 'id': cid, 'metadata': metadata or {}, 'created_at': created})

    async def get_conversation(self, request, cid):
        row = self.store.slug(request['principal'], cid)
        if row is None:
            raise not_found('conversation', 'conversation_id')
        return self.reply(self.conversation(row))

    async def delete_conversation(self, request, cid):
        p, held = request['principal'], self.locks.hold()
        try:
            await held.take(('slug', p, cid))
            row = self.store.slug(p, cid)
            if row is None:
                raise not_found('conversation', 'conversation_id')
            s = None
            if row['session'] is not None:
                await self.runner.lock_session(p, row['session'], held)
                s = self.store.session(p, row['session'])
            if s is not None:
                self.store.delete_session(p, s)
            if s is None or bug('rotate-drops-slug'):
                self.store.delete_conversation(p, cid)
        finally:
            held.free()
        return self.reply({'object': 'conversation.deleted', 'id': cid, 'deleted': True})

    def session_json(self, s):
        tip = self.store.tip(s['principal'], s['id'])
        return {'object': 'session', 'id': s['id'], 'created_at': s['created'], 'parent_id': s['parent'], 'tip_id': tip['id'] if tip else s['id'],
                'end_reason': s['end_reason'], 'conversation': s['slug'], 'kind': s['kind']}

    async def list_sessions(self, request):
        q = parse_qs(request['query'], keep_blank_values=True)
        limit, after = q.get('limit', ['20'])[-1], q.get('after', [None])[-1]
        if not re.fullmatch(r'[0-9]{1,3}', limit, re.A) or not 1 <= int(limit) <= 100:
            raise bad('limit is a number from 1 to 100', 'limit')
        if after is not None and not SESSION_ID.match(after):
            raise bad('after is the id of a session', 'after')
        rows, more = self.store.page(request['principal'], int(limit), after)
        return self.reply({'object': 'list', 'has_more': more, 'data': [self.session_json(s) for s in rows]})

    def stored_session(self, request, sid):
        s = self.store.session(request['principal'], sid)
        if s is None:
            raise not_found('session', 'session_id')
        return s

    async def get_session(self, request, sid):
        return self.reply(self.session_json(self.stored_session(request, sid)))

    async def list_messages(self, request, sid):
        s = self.stored_session(request, sid)
        messages = json.loads(s['system'] or '[]') + [{k: v for k, v in m.items() if k != '_notes'} for _, m in self.store.history(s['head'], s)]
        return self.reply({'object': 'list', 'data': messages, 'has_more': False})

    async def delete_session(self, request, sid):
        p, held = request['principal'], self.locks.hold()
        try:
            s = self.stored_session(request, sid)
            if not bug('delete-unlocked'):
                await self.runner.lock_session(p, sid, held)
                s = self.stored_session(request, sid)
                await held.take(('session', p, s['root']))
                s = self.stored_session(request, sid)
            self.store.delete_session(p, s)
        finally:
            held.free()
        return self.reply({'object': 'session', 'id': sid, 'deleted': True})

    # -- discovery ----------------------------------------------------------------------------------------
    async def models(self, request):
        data = []
        try:
            async with self.runner.model.client().get(self.args.model + '/models') as r:
                for m in (await r.json(content_type=None))['data'] if r.status == 200 else []:
                    data.append({'object': 'model', 'id': str(m['id']), 'created': int(m.get('created') or 0), 'owned_by': str(m.get('owned_by') or 'upstream')})
        except Exception:
            data = []
        return self.reply({'object': 'list', 'data': data or [{'object': 'model', 'id': 'default', 'created': 0, 'owned_by': 'gateway'}]})

    async def capabilities(self, request):
        a = self.args
        offers = ['chat', 'responses', 'stored-responses', 'conversations', 'streaming', 'compression', 'idempotency', 'sessions', 'client-tools']
        if a.cors:
            offers.append('cors')
        if len(set(a.keys.values())) > 1:
            offers.append('tenants')
        return self.reply({'object': 'capabilities', 'gateway': {'name': 'indep', 'version': '0.9'}, 'continuity': {
            'release': '1.0', 'header': HEADER, 'headers': [HEADER], 'offers': offers, 'single_user': not a.keys, 'controls': bool(a.control_token),
            'options': {'derivation': a.derivation, 'compaction': a.compaction, 'echo': a.echo, 'degraded': a.degraded, 'turns': a.turns,
                        'environment': 'none', 'tells': 'header', 'announces': a.announces}}})

    async def health(self, request):
        return self.reply({'status': 'ok'})

    # -- controls -------------------------------------------------------------------------------------------
    async def control(self, request, *fields):
        body = await self.body(request)
        for name, types in fields:
            if not isinstance(body.get(name), types):
                raise bad(f'{name} is missing or of the wrong type', name)
        if set(body) - {f[0] for f in fields}:
            raise bad('unknown field')
        return body

    async def control_evict(self, request):
        b = await self.control(request, ('response_id', str))
        self.store.delete_response(request['principal'], b['response_id'])
        return self.reply({'evicted': b['response_id']})

    async def control_session(self, request):
        b = await self.control(request, ('session_id', str))
        return self.stored_session(request, b['session_id'])

    async def control_compress(self, request):
        s = await self.control_session(request)
        tip = self.store.tip(s['principal'], s['id'])
        self.store.want_compression(s['principal'], tip['id'])
        return self.reply({'session_id': tip['id']})

    async def control_fault(self, request):
        b = await self.control(request, ('what', str), ('on', bool))
        if b['what'] not in self.store.faults:
            raise bad('what is read, write or lineage', 'what')
        self.store.faults[b['what']] = b['on']
        return self.reply({'what': b['what'], 'on': b['on']})

    async def control_fork(self, request):
        s = await self.control_session(request)
        return self.reply({'session_id': self.store.fork(s['principal'], s)})

    async def control_link(self, request):
        b = await self.control(request, ('session_id', str), ('next', (str, type(None))))
        s = self.stored_session(request, b['session_id'])
        self.store.link(s['principal'], s['id'], b.get('next'))
        return self.reply({'session_id': s['id'], 'next': b.get('next')})

    async def control_lineage(self, request):
        s = await self.control_session(request)
        return self.reply({'session_id': s['id'], 'parent_id': s['parent'], 'end_reason': s['end_reason'], 'children': self.store.children(s['principal'], s['id'])})


def answers_model():
    from model import Answer
    return Answer()


def same(a, b):
    return hmac.compare_digest(a.encode('utf-8', 'surrogateescape'), b.encode('utf-8', 'surrogateescape'))


def refuse_constant(name):
    raise ValueError(name)


def depth(value):
    deepest, stack = 0, [(value, 1)]
    while stack:
        v, d = stack.pop()
        deepest = max(deepest, d)
        if isinstance(v, (dict, list)):
            stack += [(x, d + 1) for x in (v.values() if isinstance(v, dict) else v)]
    return deepest


NUMBERS = {'temperature': (0, 2), 'top_p': (0, 1)}
COUNTS = ('max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n')


def check_fields(kind, b):
    if not isinstance(b.get('model'), str) or not b['model']:
        raise bad('model is missing', 'model')
    for k in ('stream', 'store', 'parallel_tool_calls'):
        if k in b and not isinstance(b[k], bool) and not (k == 'store' and kind == 'chat'):
            raise bad(f'{k} is true or false', k)
    for k, (low, high) in NUMBERS.items():
        if k in b and (isinstance(b[k], bool) or not isinstance(b[k], (int, float)) or not low <= b[k] <= high):
            raise bad(f'{k} is a number from {low} to {high}', k)
    for k in COUNTS:
        if k in b and (isinstance(b[k], bool) or not isinstance(b[k], (int, float)) or b[k] != int(b[k]) or b[k] < 1):
            raise bad(f'{k} is a positive number', k)
    if 'n' in b and b['n'] > 128:
        raise bad('n is 128 at most', 'n')
    if 'seed' in b and (isinstance(b['seed'], bool) or not isinstance(b['seed'], (int, float)) or b['seed'] != int(b['seed'])):
        raise bad('seed is an integer', 'seed')
    if 'stop' in b and not isinstance(b['stop'], str) and not (isinstance(b['stop'], list) and len(b['stop']) <= 4 and all(isinstance(x, str) for x in b['stop'])):
        raise bad('stop is a text or a list of up to four', 'stop')
    if 'user' in b and not isinstance(b['user'], str):
        raise bad('user is a text', 'user')
    m = b.get('metadata')
    if m is not None and not (isinstance(m, dict) and all(isinstance(v, str) and len(v) <= 512 for v in m.values())):
        raise bad('metadata is an object of texts', 'metadata')
    if 'tool_choice' in b and not isinstance(b['tool_choice'], (str, dict)):
        raise bad('tool_choice is a text or an object', 'tool_choice')
    tools = b.get('tools')
    if tools is not None and not (isinstance(tools, list) and all(isinstance(x, dict) and isinstance(x.get('type'), str) and x['type'] for x in tools)):
        raise bad('tools is a list of objects with a type', 'tools')
    if 'stream_options' in b and kind == 'chat':
        o = b['stream_options']
        if not isinstance(o, dict) or o.get('include_usage') not in (True, False, None):
            raise bad('stream_options is an object', 'stream_options')


def plain_error(self, request, status=500, exc=None, message=None):
    """What aiohttp says about a request that is no HTTP, in our words."""
    status = status if 400 <= status < 500 else 500
    e = ApiError(status, 'This is not a request that we can read.', 'invalid_request') if status < 500 else ApiError(500, 'Something broke on our side.', 'internal_error', 'server_error')
    r = web.Response(status=status, body=json.dumps(e.body()).encode(), headers={'Content-Type': 'application/json'})
    r.force_close()
    return r


async def serve(args):
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format='%(asctime)s %(levelname)s %(name)s %(message)s')
    logging.getLogger('aiohttp').setLevel(logging.CRITICAL)
    web_protocol.RequestHandler.handle_error = plain_error
    gateway = Gateway(args)
    app = web.Application(client_max_size=0)
    app.router.add_route('*', '/{tail:.*}', gateway.handle)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=args.keep_alive, shutdown_timeout=8, max_field_size=16384, max_line_size=16384)
    await runner.setup()
    await web.TCPSite(runner, args.host, args.port, backlog=256).start()
    stop = asyncio.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(s, stop.set)
    await stop.wait()
    await runner.cleanup()
    await gateway.runner.model.close()
    gateway.store.close()


if __name__ == '__main__':
    asyncio.run(serve(config.parse()))
