"""Messages: checks, the forms of the two endpoints, model views, derivation."""
import hashlib
import json

from config import bug
from errors import bad

TEXT = ('text', 'input_text', 'output_text')
PLACEHOLDER = '[the client did not return a result for this call]'


def check_content(c, where, null=False):
    if c is None and null:
        return
    if isinstance(c, str):
        return
    if not isinstance(c, list):
        raise bad('content has to be text or a list of parts', where)
    for p in c:
        if not isinstance(p, dict) or not isinstance(p.get('type'), str):
            raise bad('every part of a content needs a type', where)
        if p['type'] in TEXT and not isinstance(p.get('text'), str):
            raise bad('a text part needs its text', where)


def part(p):
    if p['type'] in TEXT:
        return {'type': 'text', 'text': p['text']}
    if p['type'] == 'input_image' and isinstance(p.get('image_url'), str):
        image = {'url': p['image_url']}
        if p.get('detail') is not None:
            image['detail'] = p['detail']
        return {'type': 'image_url', 'image_url': image}
    return p


def content(c):
    return [part(p) for p in c] if isinstance(c, list) else c


def text_of(m):
    c = m.get('content')
    if isinstance(c, str):
        return c
    if isinstance(c, list):
        return '\n'.join(p['text'] for p in c if isinstance(p, dict) and p.get('type') in TEXT and p.get('text'))
    return ''


def given_calls(calls):
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise bad('tool_calls has to be a list', 'messages')
    out = []
    for c in calls:
        f = c.get('function') if isinstance(c, dict) else None
        if not isinstance(f, dict) or not isinstance(c.get('id'), str) or not isinstance(f.get('name'), str) or not isinstance(f.get('arguments'), str):
            raise bad('a tool call needs an id, a name and arguments', 'messages')
        out.append({'id': c['id'], 'type': 'function', 'function': {'name': f['name'], 'arguments': f['arguments']}})
    return out


def chat_message(m):
    if not isinstance(m, dict) or m.get('role') not in ('system', 'developer', 'user', 'assistant', 'tool'):
        raise bad('a message needs one of the known roles', 'messages')
    role = m['role']
    check_content(m.get('content'), 'messages', null=role == 'assistant')
    out = {'role': role, 'content': content(m.get('content'))}
    if isinstance(m.get('name'), str):
        out['name'] = m['name']
    if role == 'tool':
        if not isinstance(m.get('tool_call_id'), str):
            raise bad('a tool result needs tool_call_id', 'messages')
        out['tool_call_id'] = m['tool_call_id']
    if role == 'assistant':
        calls = given_calls(m.get('tool_calls'))
        if calls:
            out['tool_calls'] = calls
        elif out['content'] is None:
            out['content'] = ''
    return out


def is_system(m):
    return m['role'] in ('system', 'developer')


def chat_input(messages):
    """(whole body, system prompt, new input) of a chat request."""
    if not isinstance(messages, list) or not messages:
        raise bad('messages has to be a list with at least one message', 'messages')
    body = [chat_message(m) for m in messages]
    k = len(body)
    while k and body[k - 1]['role'] == 'tool':
        k -= 1
    new = body[k:] or [m for m in body if m['role'] == 'user'][-1:]
    if not new:
        raise bad('there is neither a user message nor a tool result to answer', 'messages')
    return body, [m for m in body if is_system(m)], new


def response_input(value, instructions):
    """(system prompt, new input) of a response request."""
    system = []
    if instructions is not None:
        if not isinstance(instructions, str):
            raise bad('instructions has to be text', 'instructions')
        system.append({'role': 'system', 'content': instructions})
    if isinstance(value, str) and value:
        return system, [{'role': 'user', 'content': value}]
    if not isinstance(value, list) or not value:
        raise bad('input has to be text or a list of items', 'input')
    new, speaks = [], False
    for item in value:
        if not isinstance(item, dict):
            raise bad('an item of input has to be an object', 'input')
        kind = item.get('type')
        if kind == 'function_call_output':
            if not isinstance(item.get('call_id'), str) or item.get('output') is None:
                raise bad('a function_call_output needs call_id and output', 'input')
            check_content(item['output'], 'input')
            new.append({'role': 'tool', 'content': content(item['output']), 'tool_call_id': item['call_id']})
            speaks = True
        elif kind == 'function_call':
            if not all(isinstance(item.get(k), str) for k in ('call_id', 'name', 'arguments')):
                raise bad('a function_call needs call_id, name and arguments', 'input')
            call = {'id': item['call_id'], 'type': 'function', 'function': {'name': item['name'], 'arguments': item['arguments']}}
            if new and new[-1].get('tool_calls'):
                new[-1]['tool_calls'].append(call)
            else:
                new.append({'role': 'assistant', 'content': None, 'tool_calls': [call]})
        elif kind in (None, 'message') and item.get('role') in ('user', 'assistant', 'system', 'developer'):
            if item.get('content') is None:
                raise bad('a message needs content', 'input')
            check_content(item['content'], 'input')
            m = {'role': item['role'], 'content': content(item['content'])}
            (system if is_system(m) else new).append(m)
            speaks = speaks or m['role'] == 'user'
        else:
            raise bad('an item of input is neither a message nor a call nor its output', 'input')
    if not speaks:
        raise bad('there is neither a user message nor a tool result to answer', 'input')
    return system, new


def unanswered(history, new):
    """Whether a result in the new input answers no open call."""
    open_ = set()
    for i, m in enumerate(history + new):
        if m['role'] == 'user':
            open_.clear()
        elif m['role'] == 'assistant':
            open_.update(c['id'] for c in m.get('tool_calls') or [])
        elif m['role'] == 'tool':
            if i >= len(history) and m['tool_call_id'] not in open_:
                return True
            open_.discard(m['tool_call_id'])
    return False


def view(messages):
    """What the model sees: every call with its result right behind it, and no result without its call."""
    out, open_ = [], {}
    last_call = max((i for i, m in enumerate(messages) if m['role'] == 'assistant'), default=-1)
    by_id = {m['tool_call_id']: m for m in messages if m['role'] == 'tool'}
    for i, m in enumerate(messages):
        if m['role'] == 'tool':
            group = open_.pop(m['tool_call_id'], None)
            if group is not None:
                group['results'].append(by_id[m['tool_call_id']] if bug('call-id-map') else m)
                group['missing'].remove(m['tool_call_id'])
            continue
        group = {'message': m, 'results': [], 'missing': [], 'last': i == last_call}
        out.append(group)
        if m['role'] == 'user':
            open_.clear()
        for c in m.get('tool_calls') or []:
            if c['id'] not in group['missing']:
                group['missing'].append(c['id'])
                open_[c['id']] = group
    flat = []
    for g in out:
        flat.append(g['message'])
        flat += g['results']
        if g['last'] or not bug('abandoned-once'):
            flat += [{'role': 'tool', 'content': PLACEHOLDER, 'tool_call_id': i} for i in g['missing']]
    return flat


def derive(kind, messages):
    """The derived id, from the messages as they were sent."""
    first = next((i for i, m in enumerate(messages) if m['role'] == 'user'), None)
    user = '' if first is None else text_of(messages[first])
    if kind == 'content-v1':
        system = '\n'.join(text_of(m) for m in messages if m['role'] == 'system')
        return 'api-' + hashlib.sha256(f'{system}\n{user}'.encode()).hexdigest()[:16]
    before = messages if first is None else messages[:first]
    system = '\n'.join(text_of(m) for m in before if is_system(m))
    doc = json.dumps([system, user], ensure_ascii=False, separators=(',', ':'))
    return 'api2-' + hashlib.sha256(doc.encode()).hexdigest()[:32]


def canon(m):
    """Two messages are the same message if this is equal, however their client wrote them."""
    c = m.get('content')
    if isinstance(c, list) and all(p.get('type') in TEXT for p in c) and len(c) == 1:
        c = c[0]['text']
    calls = [[x['id'], x['function']['name'], x['function']['arguments']] for x in m.get('tool_calls') or []]
    return json.dumps([m['role'], c or '', calls, m.get('tool_call_id')], sort_keys=True)


def digest(m):
    return hashlib.sha256(canon(m).encode()).hexdigest()[:24]


def size(messages):
    n = 0
    for m in messages:
        c = m.get('content')
        n += len(c) if isinstance(c, str) else len(text_of(m))
        n += sum(len(x['function']['arguments']) for x in m.get('tool_calls') or [])
    return n
