"""A small fake model, a client and a way to start the server. Used by smoke.py and try_defects.py."""
import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile

import aiohttp
from aiohttp import web
from yarl import URL

HERE = os.path.dirname(os.path.abspath(__file__))
H = 'X-Hermes-Session-Id'
KEYS = {'alice': 'sk-alice', 'bob': 'sk-bob'}


def text(m):
    c = m.get('content')
    return c if isinstance(c, str) else '' if c is None else '\n'.join(p.get('text', '') for p in c)


def call(i, name='clock', arguments='{}'):
    return {'id': i, 'type': 'function', 'function': {'name': name, 'arguments': arguments}}


class FakeModel:
    """Answers `re: LAST MESSAGE`, or what a script says for a word in the last message."""

    def __init__(self):
        self.seen, self.scripts, self.summaries, self.summary = [], {}, [], None

    def on(self, word, fn):
        self.scripts[word] = fn

    async def start(self):
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post('/v1/chat/completions', self.complete)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self.runner.setup()
        site = web.TCPSite(self.runner, '127.0.0.1', 0)
        await site.start()
        self.url = f'http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1'

    async def stop(self):
        await self.runner.cleanup()

    async def complete(self, request):
        d = await request.json()
        if 'condense' in text(d['messages'][0]):
            self.summaries.append(d)
            if self.summary:
                return await self.summary(request, d)
            return self.plain('SUMMARY')
        self.seen.append(d)
        last = text(d['messages'][-1])
        for word, fn in self.scripts.items():
            if word in last:
                r = await fn(request, d)
                if r is not None:
                    return r
        if d.get('stream'):
            return await self.stream(request, [{'content': 're: '}, {'content': last}])
        return self.plain('re: ' + last)

    def plain(self, content, calls=None, finish=None):
        m = {'role': 'assistant', 'content': content}
        if calls:
            m['tool_calls'] = calls
        return web.json_response({'id': 'x', 'object': 'chat.completion', 'created': 1, 'model': 'm', 'choices': [
            {'index': 0, 'message': m, 'finish_reason': finish or ('tool_calls' if calls else 'stop')}], 'usage': {'prompt_tokens': 1, 'completion_tokens': 2, 'total_tokens': 3}})

    async def stream(self, request, deltas, finish='stop', done=True, cut=False):
        r = web.StreamResponse(headers={'Content-Type': 'text/event-stream'})
        await r.prepare(request)
        for d in deltas:
            line = json.dumps({'id': 'x', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm', 'choices': [{'index': 0, 'delta': d, 'finish_reason': None}]}, ensure_ascii=False)
            await r.write(f'data: {line}\n\n'.encode())
        if cut:
            await asyncio.sleep(0.05)
            request.transport.close()
            return r
        if finish:
            await r.write(('data: ' + json.dumps({'id': 'x', 'choices': [{'index': 0, 'delta': {}, 'finish_reason': finish}]}) + '\n\n').encode())
        if done:
            await r.write(b'data: [DONE]\n\n')
        return r


class R:
    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw
        self.sid = headers.get(H)
        self.events = []
        if headers.get('Content-Type', '').startswith('text/event-stream'):
            for block in raw.split('\n\n'):
                data = [x[6:] for x in block.split('\n') if x.startswith('data: ')]
                if data:
                    self.events.append(data[0] if data[0] == '[DONE]' else json.loads(data[0]))
            self.json = None
        else:
            self.json = json.loads(raw) if raw else None

    @property
    def deltas(self):
        return ''.join(e['choices'][0]['delta'].get('content') or '' for e in self.events if isinstance(e, dict) and e.get('choices')) or \
            ''.join(e.get('delta', '') for e in self.events if isinstance(e, dict) and e.get('type') == 'response.output_text.delta')

    @property
    def rid(self):
        if self.json:
            return self.json['id']
        return next(e['response']['id'] for e in reversed(self.events) if 'response' in e)

    @property
    def finished(self):
        for e in self.events:
            if isinstance(e, dict) and (e.get('type') in ('response.completed', 'response.incomplete') or (e.get('choices') and e['choices'][0].get('finish_reason'))):
                return True
        return False


class Server:
    def __init__(self, model, args=(), env=None):
        self.model, self.args, self.env = model, list(args), env
        self.dir = tempfile.mkdtemp(prefix='indep-')
        self.proc = self.http = None
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}'

    async def start(self):
        keys = [x for n, k in KEYS.items() for x in ('--key', f'{n}={k}')]
        self.log = open(self.dir + '/log', 'ab')
        self.proc = await asyncio.create_subprocess_exec(sys.executable, HERE + '/main.py', '--port', str(self.port), '--db', self.dir + '/g.db', '--model', self.model.url,
                                                         '--control-token', 'tok', *keys, *self.args, stdout=self.log, stderr=self.log)
        if self.http is None:
            self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        for _ in range(200):
            try:
                async with self.http.get(self.url + '/health') as r:
                    if r.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
        raise RuntimeError('no start: ' + open(self.dir + '/log').read())

    async def end(self, sig=signal.SIGTERM):
        if self.proc and self.proc.returncode is None:
            self.proc.send_signal(sig)
            await self.proc.wait()

    async def restart(self, sig=signal.SIGTERM):
        await self.end(sig)
        await self.start()

    async def close(self):
        await self.end(signal.SIGKILL)
        await self.http.close()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    async def req(self, method, path, body=None, who='alice', headers=None, **kw):
        h = {'Authorization': 'Bearer ' + KEYS[who]} if who else {}
        h.update(headers or {})
        async with self.http.request(method, URL(self.url + path, encoded=True), json=body, headers=h, **kw) as r:
            return R(r.status, r.headers, (await r.read()).decode())

    async def turn(self, path, body, sid=None, who='alice', idem=None, **kw):
        h = {}
        if sid:
            h[H] = sid
        if idem:
            h['Idempotency-Key'] = idem
        return await self.req('POST', path, body, who, h, **kw)

    async def chat(self, messages, sid=None, who='alice', idem=None, timeout=20, **body):
        if isinstance(messages, str):
            messages = [{'role': 'user', 'content': messages}]
        return await self.turn('/v1/chat/completions', {'model': 'm', 'messages': messages, **body}, sid, who, idem, timeout=aiohttp.ClientTimeout(total=timeout))

    async def resp(self, input, slug=None, prev=None, sid=None, who='alice', idem=None, **body):
        b = {'model': 'm', 'input': input, **body}
        if slug is not None:
            b['conversation'] = slug
        if prev is not None:
            b['previous_response_id'] = prev
        return await self.turn('/v1/responses', b, sid, who, idem)

    async def control(self, name, who='alice', **body):
        r = await self.req('POST', '/conformance/v1/' + name, body, who, {'X-Conformance-Token': 'tok'})
        assert r.status == 200, (name, r.status, r.raw)
        return r.json

    def view(self, n=-1):
        return self.model.seen[n]['messages']

    def said(self, n=-1):
        return [text(m) for m in self.view(n)]
