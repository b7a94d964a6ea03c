"""Calls of the model."""
import asyncio
import json

import aiohttp

from config import bug
from errors import upstream
from store import mint

PASSED = ('temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'seed', 'stop', 'presence_penalty', 'frequency_penalty', 'logit_bias',
          'response_format', 'tool_choice', 'parallel_tool_calls')
FINISHES = ('stop', 'length', 'tool_calls', 'content_filter', 'function_call')


class Answer:
    def __init__(self):
        self.content, self.calls, self.finish, self.usage = None, [], None, None

    def message(self):
        m = {'role': 'assistant', 'content': self.content}
        if self.calls:
            m['tool_calls'] = self.calls
        elif self.content is None:
            m['content'] = ''
        return m

    def settle(self):
        if self.content == '' and self.calls:
            self.content = None
        for c in self.calls:
            c['id'] = c['id'] or mint('call_', 12)
        if self.calls and self.finish in ('stop', 'function_call'):
            self.finish = 'tool_calls'
        if self.finish not in FINISHES:
            self.finish = 'stop'
        return self


def usage_of(u):
    keys = ('prompt_tokens', 'completion_tokens', 'total_tokens')
    if isinstance(u, dict) and all(isinstance(u.get(k), int) and u[k] >= 0 for k in keys):
        return {k: u[k] for k in keys}


class Model:
    def __init__(self, args):
        self.base, self.timeout = args.model, args.model_timeout
        self.headers = {'Authorization': 'Bearer ' + args.model_key} if args.model_key else {}
        self.http = None

    def client(self):
        if self.http is None:
            self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=self.headers,
                                              timeout=aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=self.timeout))
        return self.http

    async def close(self):
        if self.http is not None:
            await self.http.close()

    async def refuse(self, r):
        if r.status == 429:
            type_, code = 'server_error', 'upstream_error'
            try:
                e = (await r.json(content_type=None))['error']
                type_, code = str(e.get('type') or type_), str(e.get('code') or code)
            except Exception:
                pass
            raise upstream(429, 'The language model is overloaded; try again later.', type_, code)
        raise upstream(504 if r.status in (408, 504) else 502)

    async def plain(self, payload):
        try:
            async with self.client().post(self.base + '/chat/completions', json={**payload, 'stream': False}) as r:
                if r.status != 200:
                    await self.refuse(r)
                d = json.loads(await r.read())
            choice = d['choices'][0]
            m, a = choice['message'], Answer()
            a.content = m.get('content')
            if a.content is not None and not isinstance(a.content, str):
                raise ValueError
            for c in m.get('tool_calls') or []:
                a.calls.append({'id': c.get('id'), 'type': 'function', 'function': {'name': c['function']['name'], 'arguments': c['function'].get('arguments') or ''}})
            a.finish, a.usage = choice.get('finish_reason'), usage_of(d.get('usage'))
            return a.settle()
        except asyncio.TimeoutError:
            raise upstream(504, 'The language model took too long.') from None
        except (aiohttp.ClientError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise upstream() from None

    async def lines(self, r):
        """The data lines of an event stream."""
        if bug('sse-splitlines'):
            text = b''
            async for piece in r.content.iter_any():
                text += piece
                whole, sep, text = text.rpartition(b'\n')
                for line in (whole + sep).decode(errors='replace').splitlines():
                    if line.startswith('data:'):
                        yield line[5:].strip().encode()
            return
        rest = b''
        async for piece in r.content.iter_any():
            if bug('utf8-chunks'):
                piece = piece.decode(errors='ignore').encode()
            rest += piece
            *full, rest = rest.split(b'\n')
            for line in full:
                if line.startswith(b'data:'):
                    yield line[5:].strip()
        if rest.startswith(b'data:'):
            yield rest[5:].strip()

    async def stream(self, payload, a):
        """Yields ('text', piece) and ('call', delta), and fills the answer."""
        calls, done, tries = {}, False, 2 if bug('retry-keeps-pieces') else 1
        text = []
        while tries:
            tries -= 1
            try:
                async with self.client().post(self.base + '/chat/completions', json={**payload, 'stream': True}) as r:
                    if r.status != 200:
                        await self.refuse(r)
                    async for data in self.lines(r):
                        if data == b'[DONE]':
                            done = True
                            break
                        try:
                            d = json.loads(data)
                        except ValueError:
                            if bug('sse-splitlines'):
                                continue
                            raise
                        if 'error' in d:
                            raise ValueError
                        a.usage = usage_of(d.get('usage')) or a.usage
                        for choice in (d.get('choices') or [])[:1]:
                            delta = choice.get('delta') or {}
                            if delta.get('content') is not None:
                                text.append(delta['content'])
                                if delta['content']:
                                    yield 'text', delta['content']
                            for t in delta.get('tool_calls') or []:
                                yield 'call', self.collect(calls, t)
                            a.finish = choice.get('finish_reason') or a.finish
                if a.finish is None and not (done and bug('done-is-finish')):
                    raise ValueError
                break
            except asyncio.TimeoutError:
                raise upstream(504, 'The language model took too long.') from None
            except (aiohttp.ClientError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
                if tries:
                    continue
                raise upstream() from None
        a.content = ''.join(text) if text else None
        a.calls = [calls[i] for i in sorted(calls)]
        if any(not c['function']['name'] for c in a.calls):
            raise upstream()
        if a.calls and bug('stream-text-with-call'):
            a.content = None
        a.settle()

    def collect(self, calls, t):
        i = t.get('index', 0)
        if bug('delta-last-call') and not t.get('id') and calls:
            i = list(calls)[-1]
        f = t.get('function') or {}
        c = calls.setdefault(i, {'id': None, 'type': 'function', 'function': {'name': '', 'arguments': ''}})
        fresh = c['id'] is None
        c['id'] = c['id'] or t.get('id') or mint('call_', 12)
        c['function']['name'] += f.get('name') or ''
        c['function']['arguments'] += f.get('arguments') or ''
        out = {'index': i, 'function': {'arguments': f.get('arguments') or ''}}
        if fresh:
            out.update(id=c['id'], type='function')
        if f.get('name'):
            out['function']['name'] = f['name']
        return out
