#!/usr/bin/env python3
"""Plays one script for each defect: it must pass without the defect and fail with it.   try_defects.py [NAME ...] [--clean]"""
import asyncio
import inspect
import json
import signal
import sys
import time
import traceback

from aiohttp import web

import config
from harness import FakeModel, H, Server, call, text

TESTS = {}


def script(name, *args):
    def add(fn):
        TESTS[name] = (fn, args)
        return fn
    return add


def eq(a, b):
    assert a == b, f'{a!r} is not {b!r}'


async def gather(*c):
    return await asyncio.gather(*c)


def later(seconds, fn):
    async def run():
        await asyncio.sleep(seconds)
        return await fn
    return run()


def slow(model, seconds):
    async def fn(request, d):
        await asyncio.sleep(seconds)
    return fn


def pairs(view):
    """Every call has its result behind it, and the other way round."""
    i = 0
    while i < len(view):
        m = view[i]
        assert m['role'] != 'tool', 'a result without its call'
        need = [c['id'] for c in m.get('tool_calls') or []]
        got = []
        while i + 1 < len(view) and view[i + 1]['role'] == 'tool' and need:
            i += 1
            got.append(view[i]['tool_call_id'])
            if len(got) == len(need):
                break
        eq(sorted(got), sorted(need))
        i += 1


def calling(model, *calls, content=None):
    async def fn(request, d):
        if d['messages'][-1]['role'] == 'user':
            return model.plain(content, list(calls))
    return fn


def result(i, content):
    return [{'role': 'tool', 'tool_call_id': i, 'content': content}]


@script('repeat-as-retry')
async def _(s, m):
    for t in ('go on', 'go on', 'and?'):
        await s.chat(t, 'S')
    eq(s.said(), ['go on', 're: go on', 'go on', 're: go on', 'and?'])


@script('clip-64k')
async def _(s, m):
    long = 'x' * 70_000 + 'end'
    await s.chat(long, 'S')
    await s.chat('next', 'S')
    assert s.said()[0] == long and s.said()[1] == 're: ' + long


@script('history-window')
async def _(s, m):
    for i in range(53):
        await s.chat(f't{i}', 'S')
    await s.chat('before', 'S')
    eq(len(s.view()), 107)
    await s.restart()
    await s.chat('after', 'S')
    eq(len(s.view()), 109)
    eq(s.said()[0], 't0')


@script('empty-answer-dropped')
async def _(s, m):
    async def empty(request, d):
        return m.plain('')
    m.on('hush', empty)
    await s.chat('hush', 'S')
    await s.chat('next', 'S')
    eq([x['role'] for x in s.view()], ['user', 'assistant', 'user'])


@script('length-unstored')
async def _(s, m):
    async def short(request, d):
        return m.plain('half an', finish='length')
    m.on('tell', short)
    await s.resp('hello', slug='x')
    r = await s.resp('tell me', slug='x')
    eq((r.status, r.json['status']), (200, 'incomplete'))
    await s.resp('more', slug='x')
    eq(s.said(), ['hello', 're: hello', 'tell me', 'half an', 'more'])


@script('json-result')
async def _(s, m):
    m.on('price', calling(m, call('c1')))
    await s.chat('price', 'S')
    price = '{"price": 1.10, "at": 1e3}'
    await s.chat(result('c1', price), 'S')
    eq(s.said()[-1], price)
    await s.chat('thanks', 'S')
    eq(s.said()[2], price)


@script('tool-loop-instructions')
async def _(s, m):
    m.on('price', calling(m, call('c1')))
    r = await s.resp('price', instructions='Speak Danish.')
    await s.resp([{'type': 'function_call_output', 'call_id': 'c1', 'output': '12'}], prev=r.rid)
    assert 'Speak Danish.' not in s.said(), s.said()


@script('early-bind')
async def _(s, m):
    await s.chat('private', 'S')
    r = await s.resp('draft', slug='note', sid='S', store=False)
    eq(s.said(), ['private', 're: private', 'draft'])
    r = await s.resp('hello', slug='note')
    eq(s.said(), ['hello'])
    assert r.sid != 'S'


@script('slug-prefix')
async def _(s, m):
    base = 'project/' + 'a' * 200
    await s.resp('one', slug=base + '1')
    await s.resp('two', slug=base + '2')
    eq(s.said(), ['two'])
    r = await s.resp('x', slug=base + '1')
    eq((r.json['conversation']['id'], s.said()), (base + '1', ['one', 're: one', 'x']))


@script('path-plus')
async def _(s, m):
    await s.resp('blank', slug='c c')
    await s.resp('plus', slug='c+c')
    eq((await s.req('DELETE', '/v1/conversations/c+c')).status, 200)
    await s.resp('next', slug='c c')
    eq(s.said(), ['blank', 're: blank', 'next'])


@script('evict-by-second', '--keep-responses', '6')
async def _(s, m):
    for i in range(60):
        r = await s.resp(f't{i}')
        eq((await s.req('GET', '/v1/responses/' + r.rid)).status, 200)


@script('branch-to-tip')
async def _(s, m):
    a = await s.resp('one', slug='x')
    b = await s.resp('two', slug='x')
    await s.control('compress', session_id=b.sid)
    c = await s.resp('three', slug='x')
    assert c.sid != b.sid
    d = await s.resp('other', prev=a.rid)
    eq(s.said(), ['one', 're: one', 'other'])
    assert d.sid not in (b.sid, c.sid)


@script('branch-steals-slug')
async def _(s, m):
    a = await s.resp('one', slug='x')
    await s.resp('two', slug='x')
    await s.resp('aside', prev=a.rid)
    await s.resp('three', slug='x')
    eq(s.said(), ['one', 're: one', 'two', 're: two', 'three'])


@script('idem-memory')
async def _(s, m):
    a = await s.chat('pay', 'S', idem='k')
    b = await s.chat('pay', 'S', idem='k')
    eq(a.json, b.json)
    await s.restart()
    b = await s.chat('pay', 'S', idem='k')
    eq((len(m.seen), a.json), (1, b.json))


@script('idem-stuck')
async def _(s, m):
    tries = []

    async def fail(request, d):
        tries.append(1)
        if len(tries) == 1:
            return web.Response(status=500, text='boom')
    m.on('pay', fail)
    eq((await s.chat('pay', 'S', idem='k')).status, 502)
    eq((await s.chat('pay', 'S', idem='k')).status, 200)


@script('idem-fingerprint')
async def _(s, m):
    def body(n):
        return [{'role': 'user', 'content': [{'type': 'text', 'text': 'look'}, {'type': 'image_url', 'image_url': {'url': f'data:image/png;base64,{n}'}}]}]
    eq((await s.chat(body('AAAA'), 'S', idem='k')).status, 200)
    eq((await s.chat(body('BBBB'), 'S', idem='k')).status, 409)


@script('replay-new-id')
async def _(s, m):
    a = await s.resp('one', slug='x', stream=True, idem='k')
    b = await s.resp('one', slug='x', stream=True, idem='k')
    eq(a.deltas, b.deltas)
    eq(a.rid, b.rid)
    eq((await s.req('GET', '/v1/responses/' + b.rid)).status, 200)


@script('idem-global')
async def _(s, m):
    a = await s.chat('my secret', idem='1')
    b = await s.chat('my secret', who='bob', idem='1')
    assert a.json['id'] != b.json['id']
    eq(len(m.seen), 2)


@script('group-commit')
async def _(s, m):
    await s.chat('one', 'S')
    await asyncio.sleep(0.5)
    await s.chat('two', 'S')
    await s.restart(signal.SIGKILL)
    await s.chat('three', 'S')
    eq(s.said(), ['one', 're: one', 'two', 're: two', 'three'])


@script('stream-commit-late')
async def _(s, m):
    await s.chat('one', 'S')
    await s.control('fault', what='write', on=True)
    r = await s.chat('two', 'S', stream=True)
    assert r.status != 200 or not r.finished or 'X-Session-Degraded' in r.headers
    await s.control('fault', what='write', on=False)


@script('breaker')
async def _(s, m):
    await s.chat('one', 'S')
    await s.control('fault', what='read', on=True)
    r = await s.chat('two', 'S')
    eq((r.status, r.headers.get('X-Session-Degraded'), s.said()), (200, 'history-unavailable', ['two']))
    await s.control('fault', what='read', on=False)
    await s.chat('three', 'S')
    eq(s.said()[:2], ['one', 're: one'])


@script('cache-before-commit')
async def _(s, m):
    await s.chat('one', 'S')
    await s.control('fault', what='write', on=True)
    eq((await s.chat('two', 'S')).status, 503)
    await s.control('fault', what='write', on=False)
    await s.chat('three', 'S')
    eq(s.said(), ['one', 're: one', 'three'])


@script('done-is-finish')
async def _(s, m):
    async def cut(request, d):
        return await m.stream(request, [{'content': 'half an ans'}], finish=None)
    m.on('cut', cut)
    r = await s.resp('cut', slug='x', stream=True)
    assert not r.finished, r.events
    await s.resp('next', slug='x')
    eq(s.said(), ['next'])


@script('retry-keeps-pieces')
async def _(s, m):
    tries = []

    async def cut(request, d):
        tries.append(1)
        if len(tries) == 1:
            return await m.stream(request, [{'content': 'The answer '}], cut=True)
        return await m.stream(request, [{'content': 'The answer is 4.'}])
    m.on('cut', cut)
    r = await s.chat('cut', 'S', stream=True)
    assert not r.finished or r.deltas == 'The answer is 4.', r.deltas
    await s.chat('next', 'S')
    assert not any('The answer The' in t for t in s.said()), s.said()


@script('hangup-before-head')
async def _(s, m):
    m.on('slow', slow(m, 0.8))
    await s.chat('one', 'S')
    try:
        await s.chat('slow', 'S', stream=True, timeout=0.3)
    except asyncio.TimeoutError:
        pass
    r = await s.chat('two', 'S', timeout=4)
    eq(r.status, 200)
    assert s.said() in (['one', 're: one', 'two'], ['one', 're: one', 'slow', 're: slow', 'two'])


@script('sse-splitlines')
async def _(s, m):
    async def odd(request, d):
        if d.get('stream'):
            return await m.stream(request, [{'content': 'first'}, {'content': '\u2028second'}, {'content': ' third'}])
    m.on('odd', odd)
    r = await s.chat('odd', 'S', stream=True)
    eq(r.deltas, 'first\u2028second third')
    await s.chat('next', 'S')
    eq(s.said()[1], 'first\u2028second third')


@script('delta-last-call')
async def _(s, m):
    async def both(request, d):
        if d['messages'][-1]['role'] == 'user':
            f = lambda i, **k: {'tool_calls': [{'index': i, **k}]}
            return await m.stream(request, [f(0, id='a', type='function', function={'name': 'fa', 'arguments': ''}), f(1, id='b', type='function', function={'name': 'fb', 'arguments': ''}),
                                            f(0, function={'arguments': '{"x":'}), f(1, function={'arguments': '{"y":'}), f(0, function={'arguments': '1}'}), f(1, function={'arguments': '2}'})], 'tool_calls')
    m.on('both', both)
    await s.chat('both', 'S', stream=True)
    await s.chat(result('a', '1') + result('b', '2'), 'S')
    eq([c['function']['arguments'] for c in s.view()[1]['tool_calls']], ['{"x":1}', '{"y":2}'])


@script('stream-text-with-call')
async def _(s, m):
    async def both(request, d):
        if d['messages'][-1]['role'] == 'user':
            return await m.stream(request, [{'content': 'Let me look.'}, {'tool_calls': [{'index': 0, **call('a')}]}], 'tool_calls')
    m.on('both', both)
    await s.chat('both', 'S', stream=True)
    await s.chat(result('a', '1'), 'S')
    eq(s.said(), ['both', 'Let me look.', '1'])


@script('cache-depth')
async def _(s, m):
    await s.chat('secret', 'S')
    await s.chat('two', 'S')
    eq((await s.req('DELETE', '/v1/sessions/S')).status, 200)
    await s.chat('new', 'S')
    await s.chat('more', 'S')
    eq(s.said(), ['new', 're: new', 'more'])


@script('tip-unscoped')
async def _(s, m):
    await s.chat('a', 'main')
    await s.chat('b', 'main', who='bob')
    await s.control('compress', session_id='main')
    await s.chat('a2', 'main')
    await s.chat('b2', 'main', who='bob')
    eq(s.said(), ['b', 're: b', 'b2'])


@script('cut-through-call')
async def _(s, m):
    m.on('price', calling(m, call('c1')))
    await s.chat('hello', 'S')
    await s.chat('price', 'S')
    await s.control('compress', session_id='S')
    r = await s.chat(result('c1', 'twelve'), 'S')
    eq(len(m.summaries), 1)
    assert r.sid != 'S' and 'twelve' in s.said(), s.said()
    pairs(s.view())
    await s.chat('next', 'S')
    assert 'twelve' in s.said(), s.said()


@script('rotate-drops-slug')
async def _(s, m):
    a = await s.resp('one', slug='x')
    await s.control('compress', session_id=a.sid)
    b = await s.resp('two', slug='x')
    assert a.sid != b.sid
    r = await s.resp('three', slug='y', sid=b.sid)
    assert r.status in (400, 409) or r.sid != b.sid, 'two slugs share a session'


@script('covers-count')
async def _(s, m):
    body = []
    for t in ('one', 'two', 'three'):
        if t == 'three':
            await s.control('compress', session_id=sid)
        body.append({'role': 'user', 'content': t})
        r = await s.chat(body)
        sid = r.sid
        body.append({'role': 'assistant', 'content': 're: ' + t})
    eq(len(m.summaries), 1)
    body.append({'role': 'user', 'content': 'four'})
    assert (await s.chat(body)).sid == sid and 'one' not in s.said()
    body[1] = {'role': 'assistant', 'content': 'edited'}
    await s.chat(body)
    eq(s.said(), ['one', 'edited', 'two', 're: two', 'three', 're: three', 'four'])


@script('summary-fallback')
async def _(s, m):
    async def fail(request, d):
        return web.Response(status=500)
    m.summary = fail
    await s.chat('my name is Ada', 'S')
    await s.chat('two', 'S')
    await s.control('compress', session_id='S')
    r = await s.chat('three', 'S')
    assert r.status in (200, 502, 503, 504)
    m.summary = None
    m.summaries.clear()
    await s.chat('four', 'S')
    assert 'my name is Ada' in s.said() or (m.summaries and 'Ada' in text(m.summaries[-1]['messages'][-1])), s.said()


@script('stale-tip-in-queue')
async def _(s, m):
    await s.chat('one', 'S')
    await s.control('compress', session_id='S')
    m.on('slow', slow(m, 0.4))
    a, b = await gather(s.chat('slow', 'S'), later(0.15, s.chat('two', 'S')))
    eq((a.status, b.status), (200, 200))
    await s.chat('three', 'S')
    assert 'slow' in s.said() and 'two' in s.said(), s.said()


@script('lock-by-name')
async def _(s, m):
    a = await s.resp('one', slug='x')
    b = await s.resp('two', slug='x')
    m.on('slow', slow(m, 0.4))
    await gather(s.resp('slow one', prev=b.rid), later(0.1, s.chat('slow two', a.sid)))
    await s.resp('end', slug='x')
    assert 'slow one' in s.said() and 'slow two' in s.said(), s.said()


@script('lock-pop')
async def _(s, m):
    m.on('slow', slow(m, 0.4))
    await gather(s.chat('slow a', 'S'), later(0.1, s.chat('slow b', 'S')), later(0.6, s.chat('c', 'S')))
    await s.chat('end', 'S')
    eq(len(s.said()), 7)
    eq(s.said()[4], 'c')


@script('call-id-map')
async def _(s, m):
    m.on('price', calling(m, call('call_0')))
    for p in ('12', '99'):
        await s.chat('price?', 'S')
        await s.chat(result('call_0', p), 'S')
    eq([text(x) for x in s.view() if x['role'] == 'tool'], ['12', '99'])


@script('abandoned-once')
async def _(s, m):
    m.on('price', calling(m, call('c1')))
    await s.chat('price', 'S')
    for t in ('never mind', 'and now?', 'fine'):
        await s.chat(t, 'S')
        pairs(s.view())


@script('regenerate-appends')
async def _(s, m):
    r = await s.chat('one')
    body = [{'role': 'user', 'content': 'one'}, {'role': 'assistant', 'content': 're: one'}, {'role': 'user', 'content': 'two'}]
    await s.chat(body)
    await s.chat(body)
    await s.chat('three', r.sid)
    eq(s.said(), ['one', 're: one', 'two', 're: two', 'three'])


@script('delete-forward')
async def _(s, m):
    await s.chat('secret', 'S')
    await s.control('compress', session_id='S')
    tip = (await s.chat('two', 'S')).sid
    assert tip != 'S'
    eq((await s.req('DELETE', '/v1/sessions/' + tip)).status, 200)
    await s.chat('hello', 'S')
    eq(s.said(), ['hello'])


@script('delete-unlocked')
async def _(s, m):
    await s.chat('secret', 'S')
    m.on('slow', slow(m, 0.5))
    _, d = await gather(s.chat('slow', 'S'), later(0.2, s.req('DELETE', '/v1/sessions/S')))
    eq(d.status, 200)
    await s.chat('hello', 'S')
    eq(s.said(), ['hello'])


@script('like-delete')
async def _(s, m):
    await s.chat('a', 'user_1')
    await s.chat('b', 'userX1')
    eq((await s.req('DELETE', '/v1/sessions/user_1')).status, 200)
    await s.chat('b2', 'userX1')
    eq(s.said(), ['b', 're: b', 'b2'])


@script('foreign-delete')
async def _(s, m):
    r = await s.resp('one')
    eq((await s.req('DELETE', '/v1/responses/' + r.rid, who='bob')).status, 404)
    eq((await s.req('GET', '/v1/responses/' + r.rid)).status, 200)


@script('id-255')
async def _(s, m):
    a, b = 'i' * 255 + '1', 'i' * 255 + '2'
    eq((await s.chat('a', a)).sid, a)
    eq((await s.chat('b', b)).sid, b)
    eq(s.said(), ['b'])


@script('list-by-second')
async def _(s, m):
    ids = [(await s.chat('x', f's{i}')).sid for i in range(5)]
    got, after = [], ''
    for _ in range(5):
        page = (await s.req('GET', '/v1/sessions?limit=2' + after)).json
        got += [x['id'] for x in page['data']]
        if not page['has_more']:
            break
        after = '&after=' + got[-1]
    eq(got, ids[::-1])


@script('cors-stream')
async def _(s, m):
    for stream in (False, True):
        r = await s.chat('x', 'S', stream=stream)
        assert H in r.headers.get('Access-Control-Expose-Headers', ''), r.headers


@script('gc-shared')
async def _(s, m):
    a = await s.resp('one')
    await s.resp('two', prev=a.rid)
    b = await s.resp('aside', prev=a.rid)
    assert a.sid != b.sid
    eq((await s.req('DELETE', '/v1/sessions/' + a.sid)).status, 200)
    await s.resp('next', prev=b.rid)
    eq(s.said(), ['one', 're: one', 'aside', 're: aside', 'next'])


@script('lock-prune')
async def _(s, m):
    await s.chat('one', 'S')
    m.on('slow', slow(m, 2))

    async def others():
        for i in range(70):
            await s.chat('x', f'o{i}')
        return await s.chat('two', 'S')
    await gather(s.chat('slow', 'S'), later(0.1, others()))
    await s.chat('end', 'S')
    eq(s.said(), ['one', 're: one', 'slow', 're: slow', 'two', 're: two', 'end'])


@script('utf8-chunks')
async def _(s, m):
    async def odd(request, d):
        r = web.StreamResponse(headers={'Content-Type': 'text/event-stream'})
        await r.prepare(request)
        data = 'data: {"choices":[{"index":0,"delta":{"content":"café 日本"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'.encode()
        k = data.index(b'caf') + 4
        for piece in (data[:k], data[k:]):
            await r.write(piece)
            await asyncio.sleep(0.05)
        return r
    m.on('odd', odd)
    r = await s.chat('odd', 'S', stream=True)
    eq(r.deltas, 'café 日本')


@script('branch-race-delete')
async def _(s, m):
    a = await s.resp('one')
    await s.resp('two', prev=a.rid)
    m.on('slow', slow(m, 0.5))
    b, d = await gather(s.resp('slow', prev=a.rid), later(0.2, s.req('DELETE', '/v1/sessions/' + a.sid)))
    eq((b.status, d.status), (200, 200))
    await s.resp('next', prev=b.rid)
    eq(s.said(), ['one', 're: one', 'slow', 're: slow', 'next'])


@script('replay-after-delete')
async def _(s, m):
    await s.chat('one', 'S', idem='k')
    eq((await s.req('DELETE', '/v1/sessions/S')).status, 200)
    await s.chat('one', 'S', idem='k')
    await s.chat('two', 'S')
    eq(s.said(), ['one', 're: one', 'two'])


@script('idem-scope-tip')
async def _(s, m):
    await s.chat('one', 'S')
    await s.control('compress', session_id='S')
    a = await s.chat('pay', 'S', idem='k')
    b = await s.chat('pay', 'S', idem='k')
    eq(a.json, b.json)
    await s.chat('next', 'S')
    eq(s.said().count('pay'), 1)


@script('empty-slug-cleanup')
async def _(s, m):
    a = await s.resp('one', slug='x')
    eq((await s.req('DELETE', '/v1/responses/' + a.rid)).status, 200)
    b = await s.resp('two', slug='x')
    eq((b.sid, s.said()), (a.sid, ['one', 're: one', 'two']))


async def play(name, defect):
    fn, args = TESTS[name]
    model = FakeModel()
    await model.start()
    server = Server(model, [*args, *(['--defect', name] if defect else [])])
    try:
        await server.start()
        await fn(server, model)
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)
        line = next((f.line for f in reversed(last) if f.filename.endswith('try_defects.py')), '')
        return f'{type(e).__name__} {str(e)[:160]}  at: {line[:90]}'
    finally:
        if '--log' in sys.argv:
            print(open(server.dir + '/log').read()[-3000:])
        await server.close()
        await model.stop()


async def main():
    names = [a for a in sys.argv[1:] if not a.startswith('--')] or list(TESTS)
    wrong = 0
    for name in names:
        t0 = time.time()
        clean = await play(name, False)
        broken = None if '--clean' in sys.argv else await play(name, True)
        ok = clean is None and ('--clean' in sys.argv or broken is not None)
        wrong += not ok
        print(f'{"ok  " if ok else "BAD "} {name:24} {time.time() - t0:4.1f}s  clean: {clean or "passes"} | defect: {broken or "passes"}', flush=True)
    print(f'{len(names)} scripts, {wrong} wrong; defects without a script: {sorted(set(config.DEFECTS) - set(TESTS))}')
    return wrong


if __name__ == '__main__':
    sys.exit(min(1, asyncio.run(main())))
