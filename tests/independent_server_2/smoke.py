#!/usr/bin/env python3
"""Smoke tests of the server without defects, under several switches.   smoke.py [NAME ...]"""
import asyncio
import json
import os
import signal
import socket
import sys
import traceback

from aiohttp import web

from harness import H, FakeModel, Server, call, text
from try_defects import calling, eq, gather, later, pairs, result, slow

TESTS = {}
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'given', 'vectors')


def smoke(*args):
    def add(fn):
        TESTS[fn.__name__] = (fn, args)
        return fn
    return add


@smoke()
async def core(s, m):
    r = await s.chat([{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'a'}], 'S')
    eq((r.status, r.sid, r.json['session']), (200, 'S', {'id': 'S', 'rotated_from': None, 'degraded': False}))
    r = await s.chat([{'role': 'user', 'content': 'x'}, {'role': 'assistant', 'content': 'lie'}, {'role': 'developer', 'content': 'D'}, {'role': 'user', 'content': 'b'}], 'S', stream=True)
    eq((r.sid, r.deltas, r.events[-1], s.said()), ('S', 're: b', '[DONE]', ['D', 'a', 're: a', 'b']))
    r = await s.req('POST', '/v1/chat/completions', {'model': 'm', 'messages': [{'role': 'user', 'content': 'c'}]}, headers={H.lower(): '  S  '})
    eq((r.sid, len(s.view())), ('S', 5))
    for body in ({'model': 'm', 'messages': [{'role': 'system', 'content': 'x'}]}, {'model': 'm', 'messages': []}, {'messages': 1, 'model': 'm'}):
        r = await s.turn('/v1/chat/completions', body, 'S')
        eq((r.status, sorted(r.json['error'])), (400, ['code', 'message', 'param', 'type']))
    eq((await s.chat('x', 'i' * 257)).status, 400)
    eq((await s.chat('x', 'i' * 256)).sid, 'i' * 256)
    r = await s.chat([{'role': 'user', 'content': [{'type': 'text', 'text': 'é'}, {'type': 'image_url', 'image_url': {'url': 'data:x'}}]}], 'P')
    await s.chat('n', 'P')
    eq(s.view()[0]['content'][1]['image_url']['url'], 'data:x')
    r = await s.req('GET', '/v1/sessions/S/messages')
    eq([x['content'] for x in r.json['data']], ['a', 're: a', 'b', 're: b', 'c', 're: c'])
    eq((await s.req('GET', '/v1/sessions/S', who='bob')).status, 404)
    eq((await s.req('PUT', '/v1/sessions/S')).headers['Allow'], 'GET, DELETE')
    eq((await s.req('GET', '/v1/sessions/S', who=None)).status, 401)
    eq((await s.req('OPTIONS', '/v1/chat/completions', who=None)).status, 204)
    eq((await s.req('GET', '/v1/models')).status, 200)


@smoke()
async def derived(s, m):
    for v in json.load(open(VECTORS + '/derivation-v2.json')):
        r = await s.turn('/v1/chat/completions', {'model': 'm', 'messages': v['messages']})
        eq((v['description'], r.status, r.sid), (v['description'], 200, v['id']))
    body = [{'role': 'system', 'content': 'Pirate'}, {'role': 'user', 'content': 'one'}]
    r = await s.chat(body)
    body += [{'role': 'assistant', 'content': 're: one'}, {'role': 'user', 'content': 'two'}]
    eq((await s.chat(body)).sid, r.sid)
    eq(s.view(), body)
    await s.chat('three', r.sid)
    eq(s.said(), ['Pirate', 'one', 're: one', 'two', 're: two', 'three'])
    await s.chat([{'role': 'system', 'content': 'Mine'}, {'role': 'user', 'content': 'four'}], r.sid)
    eq((s.said()[0], len(s.said())), ('Mine', 8))
    eq(len([x for x in (await s.req('GET', '/v1/sessions?limit=100')).json['data'] if x['id'] == r.sid]), 1)
    a, b = await s.chat('same'), await s.chat('same', who='bob')
    eq(a.sid, b.sid)
    await s.chat('more', b.sid, who='bob')
    eq(s.said(), ['same', 're: same', 'more'])


@smoke('--derivation', 'content-v1')
async def derived_v1(s, m):
    for v in json.load(open(VECTORS + '/derivation-v1.json')):
        r = await s.turn('/v1/chat/completions', {'model': 'm', 'messages': v['messages']})
        eq((v['description'], r.status, r.sid), (v['description'], 200, v['id']))


@smoke('--derivation', 'none')
async def underived(s, m):
    body = [{'role': 'system', 'content': 'P'}, {'role': 'user', 'content': 'one'}, {'role': 'assistant', 'content': 'x'}, {'role': 'user', 'content': 'two'}]
    a, b = await s.chat(body), await s.chat(body)
    assert a.sid != b.sid
    eq(s.view(), body)
    await s.chat('three', a.sid)
    eq(s.said(), ['P', 'one', 'x', 'two', 're: two', 'three'])


@smoke()
async def tips(s, m):
    """The vectors of the tips, each in names of its own, made with `link` and read by tip_id."""
    for n, v in enumerate(json.load(open(VECTORS + '/tip-resolution.json'))):
        name = lambda i: f'v{n}-' + ''.join(f'{ord(c):x}.' for c in i)
        if len(v['sessions']) > 12:
            continue
        for x in v['sessions']:
            await s.chat('x', name(x['id']))
        for x in v['sessions']:
            await s.control('link', session_id=name(x['id']), next=x['next'] and name(x['next']))
        r = await s.req('GET', '/v1/sessions/' + name(v['from']))
        eq((v['description'], r.json['tip_id']), (v['description'], name(v['tip'])))
        eq((await s.chat('y', name(v['from']))).sid, name(v['tip']))


@smoke()
async def responses(s, m):
    a = await s.resp('one', slug='holiday plans')
    b = await s.resp('two', slug={'id': 'holiday plans'}, stream=True)
    eq((a.sid, b.deltas), (b.sid, 're: two'))
    eq([e.get('sequence_number') for e in b.events], list(range(len(b.events))))
    assert b.events[-1]['type'] == 'response.completed'
    c = await s.resp('three', prev=b.rid)
    eq((c.sid, s.said()), (a.sid, ['one', 're: one', 'two', 're: two', 'three']))
    d = await s.resp('aside', prev=a.rid)
    assert d.sid != a.sid
    eq(s.said(), ['one', 're: one', 'aside'])
    eq((await s.req('GET', '/v1/sessions/' + d.sid)).json['parent_id'], a.sid)
    await s.chat('four', a.sid)
    eq(len(s.said()), 7)
    e = await s.resp('again', prev=c.rid)
    assert e.sid != a.sid and 'four' not in s.said()
    eq((await s.resp('x', prev='resp_' + '0' * 40)).status, 404)
    eq((await s.resp('x', prev=a.rid, slug='z')).status, 400)
    eq((await s.resp('x', prev=a.rid, who='bob')).status, 404)
    eq((await s.resp('x', slug='s' * 257)).status, 400)
    eq((await s.resp('x', slug='日' * 256)).status, 200)
    eq((await s.resp('x', prev=e.rid, sid=a.sid)).status, 409)
    eq((await s.resp('x', slug='fresh', sid=a.sid)).status, 409)
    eq((await s.resp('x', prev=a.rid, sid=a.sid)).status, 409)
    eq((await s.resp('x', slug='holiday plans', sid=a.sid)).status, 200)
    eq((await s.req('GET', '/v1/responses/' + a.rid)).json, a.json)
    eq((await s.req('DELETE', '/v1/responses/' + a.rid)).status, 200)
    eq((await s.req('GET', '/v1/responses/' + a.rid)).status, 404)
    eq((await s.resp('x', prev=a.rid)).status, 404)
    n = len((await s.req('GET', '/v1/sessions')).json['data'])
    r = await s.resp('x', slug='holiday plans', store=False)
    eq((await s.req('GET', '/v1/responses/' + r.rid)).status, 404)
    r = await s.resp('x', store=False)
    eq((await s.req('GET', '/v1/sessions/' + r.sid)).status, 404)
    await s.resp('x', slug='never', store=False)
    eq((await s.req('GET', '/v1/conversations/never')).status, 404)
    eq(len((await s.req('GET', '/v1/sessions')).json['data']), n)
    v = await s.req('POST', '/v1/conversations', {'metadata': {'a': 'b'}})
    eq((await s.req('GET', '/v1/conversations/' + v.rid)).json, v.json)
    r = await s.resp('x', slug=v.rid)
    eq((await s.req('GET', '/v1/sessions/' + r.sid)).json['conversation'], v.rid)
    eq((await s.req('DELETE', '/v1/conversations/' + v.rid)).status, 200)
    eq((await s.req('DELETE', '/v1/conversations/' + v.rid)).status, 404)
    eq((await s.req('GET', '/v1/sessions/' + r.sid)).status, 404)
    await s.resp('y', slug=v.rid)
    eq(s.said(), ['y'])


@smoke()
async def tools(s, m):
    m.on('price', calling(m, call('c1'), call('c2'), content='Wait.'))
    for stream in (False, True):
        async def streamed(request, d):
            if d.get('stream') and d['messages'][-1]['role'] == 'user':
                return await m.stream(request, [{'content': 'Wait.'}, {'tool_calls': [{'index': 0, **call('c1')}]}, {'tool_calls': [{'index': 1, **call('c2')}]}], 'tool_calls')
            return await calling(m, call('c1'), call('c2'), content='Wait.')(request, d)
        m.on('price', streamed)
        tools = [{'type': 'function', 'name': 'clock', 'parameters': {}}]
        r = await s.resp('price', slug=f't{stream}', stream=stream, tools=tools)
        eq(m.seen[-1]['tools'], [{'type': 'function', 'function': {'name': 'clock', 'parameters': {}}}])
        out = (r.json or r.events[-1]['response'])['output']
        eq([x['type'] for x in out], ['message', 'function_call', 'function_call'])
        eq((await s.resp([{'type': 'function_call_output', 'call_id': 'zz', 'output': '1'}], slug=f't{stream}')).status, 404)
        r = await s.resp([{'type': 'function_call_output', 'call_id': 'c2', 'output': ''}], slug=f't{stream}')
        eq(r.status, 200)
        pairs(s.view())
        r = await s.resp([{'type': 'function_call_output', 'call_id': 'c1', 'output': '1'}], slug=f't{stream}')
        eq(r.status, 200)
        pairs(s.view())
        await s.resp('done', slug=f't{stream}')
        pairs(s.view())
        eq([text(x) for x in s.view() if x['role'] == 'tool'], ['', '1'])


@smoke('--announces', 'finish-chunk')
async def rotation(s, m):
    await s.chat('one', 'S')
    await s.chat('two', 'S')
    await s.control('compress', session_id='S')
    r = await s.chat('three', 'S', stream=True)
    fin = [e for e in r.events if isinstance(e, dict) and e.get('session')]
    tip = fin[0]['session']['id']
    eq((r.sid, fin[0]['session']['rotated_from']), ('S', 'S'))
    eq(s.said()[1:], ['two', 're: two', 'three'])
    r = await s.chat('four', 'S')
    eq((r.sid, s.said()[1:]), (tip, ['two', 're: two', 'three', 're: three', 'four']))
    eq((await s.req('GET', '/v1/sessions/S')).json['end_reason'], 'compression')
    eq((await s.req('GET', '/v1/sessions/' + tip)).json['parent_id'], 'S')
    f = (await s.control('fork', session_id='S'))['session_id']
    await s.chat('x', f)
    eq(s.said(), ['one', 're: one', 'two', 're: two', 'x'])
    eq((await s.chat('five', 'S')).sid, tip)
    await s.control('fault', what='lineage', on=True)
    r = await s.chat('deg', 'S')
    eq((r.sid, r.headers['X-Session-Degraded'], s.said()), ('S', 'history-unavailable', ['deg']))
    await s.control('fault', what='lineage', on=False)
    r = await s.chat('six', 'S')
    assert 'deg' not in s.said() and 'five' in s.said()
    body = []
    for i, t in enumerate(('d1', 'd2', 'd3', 'd4', 'd5')):
        body.append({'role': 'user', 'content': t})
        if t in ('d3', 'd4'):
            await s.control('compress', session_id=r.sid)
        r = await s.chat(body)
        body.append({'role': 'assistant', 'content': 're: ' + t})
    eq(s.said()[1:], ['d3', 're: d3', 'd4', 're: d4', 'd5'])
    eq(len([x for x in (await s.req('GET', '/v1/sessions?limit=100')).json['data'] if x['kind'] == 'compression']), 3)
    a = await s.resp('r1')
    await s.control('compress', session_id=a.sid)
    b = await s.resp('r2', prev=a.rid, stream=True)
    tip = b.events[-1]['response']['session']['id']
    assert tip != a.sid
    c = await s.resp('r3', prev=b.rid)
    eq((c.sid, s.said()[1:]), (tip, ['r2', 're: r2', 'r3']))


@smoke('--echo', 'alias')
async def alias(s, m):
    await s.chat('one', 'S')
    await s.control('compress', session_id='S')
    eq([(await s.chat(t, 'S')).sid for t in 'ab'], ['S', 'S'])
    a = await s.resp('one', slug='x')
    await s.control('compress', session_id=a.sid)
    eq([(await s.resp(t, slug='x')).sid for t in 'ab'], [a.sid] * 2)


@smoke('--compaction', 'in-place', '--context-chars', '300')
async def in_place(s, m):
    for i in range(8):
        eq((await s.chat(f't{i} ' + 'x' * 40, 'S')).sid, 'S')
    assert m.summaries and s.said()[-1].startswith('t7') and len(s.view()) < 8


@smoke('--turns', 'reject')
async def reject(s, m):
    m.on('slow', slow(m, 0.4))
    a, b = await gather(s.chat('slow', 'S'), later(0.1, s.chat('two', 'S')))
    eq((a.status, b.status, b.headers['Retry-After']), (200, 409, '1'))
    eq((await s.chat('three', 'S')).status, 200)
    eq(s.said(), ['slow', 're: slow', 'three'])


@smoke('--degraded', 'refuse')
async def refuse(s, m):
    await s.chat('one', 'S')
    await s.control('fault', what='read', on=True)
    n = len(m.seen)
    for r in (await s.chat('two', 'S'), await s.chat('d'), await s.resp('x', slug='y'), await s.chat('z', 'S', stream=True)):
        eq((r.status, r.json['error']['code']), (503, 'history_unavailable'))
    eq(len(m.seen), n)
    await s.control('fault', what='read', on=False)
    await s.chat('three', 'S')
    eq(s.said(), ['one', 're: one', 'three'])


@smoke()
async def concurrency(s, m):
    await gather(*(s.chat(f'c{i}', 'S') for i in range(12)))
    await s.chat('end', 'S')
    eq((len(s.said()), len(set(s.said()))), (25, 25))
    rs = await gather(*(s.resp(f'c{i}', slug='x') for i in range(12)))
    eq(len({r.sid for r in rs}), 1)
    await s.control('compress', session_id='S')
    rs = await gather(*(s.chat(f'd{i}', 'S', stream=bool(i % 2)) for i in range(8)))
    await s.chat('end2', 'S')
    eq(len([t for t in s.said() if t.startswith('d')]), 8)
    a = await s.resp('p')
    rs = await gather(*(s.resp(f'p{i}', prev=a.rid) for i in range(5)))
    eq((len({r.sid for r in rs}), a.sid in {r.sid for r in rs}), (5, True))
    rs = await gather(*(s.chat('pay', 'I', idem='k') for _ in range(6)))
    eq(len({r.json['id'] for r in rs}), 1)
    rs = await gather(*(s.resp('pay', idem='k2') for _ in range(6)))
    eq(len({r.rid for r in rs}), 1)
    eq((await s.resp('other', idem='k2')).status, 409)
    m.on('slow', slow(m, 0.5))
    t0 = asyncio.get_running_loop().time()
    await gather(s.chat('slow', 'A'), later(0.05, s.chat('quick', 'B')))
    assert asyncio.get_running_loop().time() - t0 < 0.9


@smoke()
async def failures(s, m):
    async def boom(request, d):
        return web.Response(status=500, text='secret /etc/x')
    async def many(request, d):
        return web.json_response({'error': {'message': 'slow down', 'type': 'requests', 'code': 'rate_limit_exceeded'}}, status=429)
    async def cut(request, d):
        return await m.stream(request, [{'content': 'half'}], cut=True)
    m.on('boom', boom)
    m.on('many', many)
    m.on('cut', cut)
    await s.chat('one', 'S')
    for stream in (False, True):
        r = await s.chat('boom', 'S', stream=stream)
        eq((r.status, r.json['error']['code'], r.sid), (502, 'upstream_error', 'S'))
        r = await s.chat('many', 'S', stream=stream)
        eq((r.status, r.json['error']['code']), (429, 'rate_limit_exceeded'))
    r = await s.chat('cut', 'S', stream=True)
    assert r.events[-1] == '[DONE]' and 'error' in r.events[-2] and not r.finished
    r = await s.resp('cut', slug='x', stream=True)
    eq(r.events[-1]['type'], 'response.failed')
    eq((await s.req('GET', '/v1/conversations/x')).status, 404)
    eq((await s.req('GET', '/v1/responses/' + r.rid)).status, 404)
    await s.chat('two', 'S')
    eq(s.said(), ['one', 're: one', 'two'])
    m.on('slow', slow(m, 0.5))
    for stream in (False, True):
        try:
            await s.chat('slow', f'H{stream}', stream=stream, timeout=0.2)
        except asyncio.TimeoutError:
            pass
        eq((await s.chat('on', f'H{stream}')).status, 200)
    await s.control('fault', what='write', on=True)
    eq((await s.chat('three', 'S')).status, 503)
    r = await s.resp('three', slug='w', stream=True)
    eq(r.events[-1]['type'], 'response.failed')
    await s.control('fault', what='write', on=False)
    eq((await s.req('GET', '/v1/conversations/w')).status, 404)
    await s.restart()
    await s.restart(signal.SIGKILL)
    await s.chat('four', 'S')
    eq(s.said(), ['one', 're: one', 'two', 're: two', 'four'])
    task = asyncio.ensure_future(s.chat('slow', 'S'))
    await asyncio.sleep(0.2)
    await s.restart(signal.SIGKILL)
    await asyncio.wait([task])
    task.exception()
    await s.chat('five', 'S')
    eq(s.said()[-3:], ['four', 're: four', 'five'])


@smoke()
async def kills(s, m):
    acked = {f'K{i}': [] for i in range(4)}

    async def load(sid):
        for n in range(1000):
            word = f'{sid}-{len(acked[sid])}-{n}'
            try:
                r = await s.chat(word, sid, stream=bool(n % 2))
                if r.status == 200 and (r.json or r.finished):
                    acked[sid].append(word)
            except Exception:
                return
    for _ in range(4):
        tasks = [asyncio.ensure_future(load(sid)) for sid in acked]
        await asyncio.sleep(0.3)
        await s.end(signal.SIGKILL)
        await asyncio.wait(tasks)
        await s.start()
    for sid, words in acked.items():
        await s.chat('end', sid)
        said = [t for t in s.said() if not t.startswith('re: ') and t != 'end']
        assert words and [w for w in said if w in words] == words and len(set(said)) == len(said), (words, said)
    m.on('slow', slow(m, 0.6))
    task = asyncio.ensure_future(s.chat('slow', 'T'))
    await asyncio.sleep(0.2)
    await s.end(signal.SIGTERM)
    eq((await task).status, 200)
    await s.start()
    await s.chat('x', 'T')
    eq(s.said(), ['slow', 're: slow', 'x'])


@smoke('--db', '/no/such/folder/x.db')
async def no_store(s, m):
    r = await s.chat('one', 'S')
    eq((r.status, r.sid, r.headers.get('X-Session-Degraded')), (200, 'S', 'history-unavailable'))
    eq((await s.resp('one', slug='S')).status, 503)
    eq((await s.resp('one')).status, 503)


@smoke('--hangup', 'drop', '--sse', 'plain', '--keep-alive', '1', '--close-errors', 'no', '--cors', '')
async def other_switches(s, m):
    m.on('slow', slow(m, 0.5))
    await s.chat('one', 'S')
    try:
        await s.chat('slow', 'S', stream=True, timeout=0.2)
    except asyncio.TimeoutError:
        pass
    r = await s.chat('two', 'S', stream=True)
    eq((r.deltas, r.headers.get('Access-Control-Expose-Headers')), ('re: two', None))
    assert len(s.said()) in (3, 5)
    eq((await s.chat('x', 'i' * 300)).status, 400)


async def raw(s, data, half=0.3):
    r, w = await asyncio.open_connection('127.0.0.1', s.port)
    w.write(data)
    try:
        out = await asyncio.wait_for(r.read(65536), 3)
    finally:
        w.close()
    return out.decode(errors='replace')


@smoke()
async def hostile(s, m):
    auth = b'Authorization: Bearer sk-alice\r\nHost: x\r\nContent-Type: application/json\r\n'
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    for value in (b'a\x00b', b'a\x01b', b'a\tb', 'é'.encode(), b'a b'):
        out = await raw(s, b'POST /v1/chat/completions HTTP/1.1\r\n' + auth + b'X-Hermes-Session-Id: ' + value + b'\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
        assert ' 400 ' in out[:16] and '"error"' in out, (value, out)
    out = await raw(s, b'POST /v1/chat/completions HTTP/1.1\r\n' + auth + b'X-Hermes-Session-Id: a\r\nX-Hermes-Session-Id: a\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
    assert out.startswith('HTTP/1.1 400'), out
    for bad, status in ((b'{', 400), (b'[' * 100000, 400), (b'[]', 400), (b'{"a":"\\ud800"}', 400), (b'\xff', 400), (b'{"model":"m","messages":NaN}', 400), (b'1' * 5000, 400)):
        out = await raw(s, b'POST /v1/responses HTTP/1.1\r\n' + auth + b'Content-Length: %d\r\n\r\n' % len(bad) + bad)
        assert out.startswith(f'HTTP/1.1 {status}'), (bad[:20], out)
    eq((await s.chat('x' * 9_000_000, 'S')).status, 413)
    eq((await s.chat('ok', 'S')).status, 200)
    for sid in ('../x', '/etc/x', 'C:\\x', '%2e%2e', 'a/b', 'a%2Fb', 'A', 'a', 'a_b', 'a:b', "';--"):
        eq((await s.chat('mine', sid)).sid, sid)
        eq(s.said(), ['mine'])
    from urllib.parse import quote
    eq((await s.req('GET', '/v1/sessions/' + quote('a%2Fb', safe=''))).json['id'], 'a%2Fb')
    eq((await s.req('DELETE', '/v1/sessions/' + quote('../x', safe=''))).json['id'], '../x')
    eq((await s.req('GET', '/nothing')).status, 404)
    eq((await s.req('POST', '/conformance/v1/evict', {'response_id': 'x'})).status, 404)
    eq((await s.req('POST', '/v1/chat/completions', who=None)).status, 401)
    out = await raw(s, b'GET /v1/capabilities HTTP/1.1\r\nHost: x\r\n\r\n')
    assert out.startswith('HTTP/1.1 401') and f'\n{H}:' not in out
    for i in range(3):
        await s.control('evict', response_id=(await s.resp(f'{i}', slug='e')).rid)
    await s.resp('end', slug='e')
    eq(len(s.said()), 7)


async def play(name):
    fn, args = TESTS[name]
    model = FakeModel()
    await model.start()
    server = Server(model, args)
    try:
        await server.start()
        await fn(server, model)
        return None
    except Exception as e:
        return ''.join(traceback.format_exception(e))[-1200:]
    finally:
        out = open(server.dir + '/log').read()
        if 'Traceback' in out or '--log' in sys.argv:
            print(out[-2500:])
        await server.close()
        await model.stop()


async def main():
    wrong = 0
    for name in [a for a in sys.argv[1:] if a[0] != '-'] or list(TESTS):
        r = await play(name)
        wrong += r is not None
        print(f'{"ok  " if r is None else "BAD "} {name} {r or ""}', flush=True)
    return wrong


if __name__ == '__main__':
    sys.exit(min(1, asyncio.run(main())))
