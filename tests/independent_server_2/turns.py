"""One turn: which session it runs in, what the model sees, what is stored."""
import dataclasses
import hashlib
import json
import logging
import time

import convert
from config import bug
from errors import ApiError, StoreError, bad, conflict, not_found, unavailable
from model import PASSED, Answer, Model
from store import mint

log = logging.getLogger('gateway')
SUMMARY_PROMPT = 'You condense conversations. Rewrite the transcript below as compact notes that keep every fact, name, number and open question.'
SUMMARY_HEAD = 'Notes on the earlier part of this conversation:\n'


@dataclasses.dataclass
class Write:
    principal: str
    sid: str
    base: int | None
    base_path: list
    add: list
    rotated_from: str | None = None
    parent: str | None = None
    kind: str = 'session'
    system: str | None = None
    covers: str | None = None
    compressed: bool = False
    slug: str | None = None
    response: dict | None = None
    replay: tuple | None = None


class Turn:
    def __init__(self, kind, principal, body, header, key):
        self.kind, self.principal, self.body, self.header, self.key = kind, principal, body, header, key
        self.model, self.stream = body['model'], body.get('stream') is True
        self.slug = self.prev = self.bind = None
        self.store = True
        if kind == 'chat':
            self.messages, self.system, self.new = convert.chat_input(body.get('messages'))
        else:
            self.store = body.get('store') is not False
            self.slug = slug_of(body.get('conversation'))
            self.prev = body.get('previous_response_id')
            if self.slug is not None and self.prev is not None:
                raise bad('conversation and previous_response_id exclude each other', 'previous_response_id', 'mutually_exclusive_parameters')
            if self.prev is not None and (not isinstance(self.prev, str) or not self.prev):
                raise bad('previous_response_id has to be the id of a response', 'previous_response_id')
            self.system, self.new = convert.response_input(body.get('input'), body.get('instructions'))
        doc = [kind, body]
        if bug('idem-fingerprint'):
            doc = [kind, self.model, [convert.text_of(m) for m in self.new]]
        self.fingerprint = hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest()
        self.derived = False
        self.session = None            # the row of the session that the turn runs in, if it exists
        self.sid = None
        self.known = False             # whether errors may name the session
        self.path, self.pre = [], self.new
        self.parent, self.session_kind = None, 'session'
        self.stored_system = None      # system prompt of a derived conversation
        self.covers = []
        self.scope = None              # of the idempotency key; None: the session of the turn
        self.degraded = None
        self.rotated_from, self.compressed = None, False
        self.view = None
        self.created = int(time.time())
        self.id = mint('chatcmpl-', 12) if kind == 'chat' else mint('resp_')
        self.prev_instructions = None


def slug_of(value):
    if isinstance(value, dict):
        value = value.get('id')
        if value is None:
            raise bad('conversation needs an id', 'conversation')
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= 256:
        raise bad('conversation has to be a text of 1 to 256 characters', 'conversation')
    return value[:191] if bug('slug-prefix') else value


class Runner:
    def __init__(self, args, store, locks):
        self.args, self.store, self.locks = args, store, locks
        self.model = Model(args)
        self.pending = set()

    # -- the session of the turn --------------------------------------------------------------------
    async def lock_session(self, principal, sid, held, wait=False):
        """Locks the conversation that this id is part of, and returns the row of its tip, or None."""
        while True:
            s = self.store.tip(principal, sid)
            root = s['root'] if s else sid
            if bug('lock-by-name'):
                root = sid
            key = ('session', principal, root)
            await held.take(key, wait)
            if bug('stale-tip-in-queue'):
                return self.store.session(principal, s['id']) if s else self.store.tip(principal, sid)
            now = self.store.tip(principal, sid)
            if (now['root'] if now else sid) == root or bug('lock-by-name'):
                return now
            held.drop(key)

    async def enter(self, t, sid, held):
        t.sid = sid
        try:
            s = await self.lock_session(t.principal, sid, held)
            self.adopt(t, s)
        except StoreError:
            if self.args.degraded == 'refuse':
                raise unavailable()
            await held.take(('session', t.principal, sid))
            t.session, t.path, t.degraded = None, [], 'history-unavailable'

    def adopt(self, t, s):
        t.session = s
        if s is not None:
            t.path = self.store.history(s['head'], s)
            t.sid = s['id']
            t.stored_system = s['system']
            t.covers = json.loads(s['covers'] or '[]')

    def fresh(self, t):
        t.sid = mint('ses-')

    async def resolve(self, t, held):
        a, p = self.args, t.principal
        if t.key is not None:
            await held.take(('key', p, t.key, t.header, t.slug, t.prev))
        if t.kind == 'chat' and t.header is None:
            t.scope = ''
            if a.derivation == 'none':
                self.fresh(t)
            else:
                t.derived = True
                await self.enter(t, convert.derive(a.derivation, t.body['messages']), held)
        elif t.slug is not None:
            await self.by_slug(t, held)
        elif t.prev is not None:
            await self.by_previous(t, held)
        elif t.header is not None:
            t.known = True
            await self.enter(t, t.header, held)
        else:
            t.scope = ''
            self.fresh(t)
        t.known = t.known or t.session is not None or t.derived

    async def by_slug(self, t, held):
        p = t.principal
        await held.take(('slug', p, t.slug))
        try:
            row = self.store.slug(p, t.slug)
            if row is None or row['session'] is None:
                t.bind = t.slug
                if t.header is None:
                    return self.fresh(t)
                await self.enter(t, t.header, held)
                if t.degraded:
                    raise unavailable()
                if t.session is not None and t.session['slug'] not in (None, t.slug):
                    raise conflict()
                if bug('early-bind') and t.session is not None:
                    self.store.bind(p, t.slug, t.session['id'])
                return
            await self.enter(t, row['session'], held)
            if t.degraded:
                raise unavailable()
            if t.header is not None:
                h = self.store.tip(p, t.header)
                if h is None or t.session is None or h['id'] != t.session['id']:
                    raise conflict()
            if t.session is None:
                t.bind = t.slug
                self.fresh(t)
            else:
                t.known = True
                if not self.store.rows('SELECT 1 FROM responses WHERE head=? LIMIT 1', t.session['head']):
                    log.info('slug %r goes on in session %s without its last response', t.slug, t.sid)
        except StoreError:
            raise unavailable() from None

    async def by_previous(self, t, held):
        p = t.principal
        try:
            r = self.store.response(p, t.prev)
            s = r and self.store.session(p, r['session'])
            if s is None:
                raise not_found('previous_response', 'previous_response_id')
            key = ('session', p, t.prev if bug('lock-by-name') else s['root'])
            await held.take(key)
            r = self.store.response(p, t.prev)
            s = r and self.store.session(p, r['session'])
            if s is None:
                raise not_found('previous_response', 'previous_response_id')
            t.scope = s['root']
            if bug('tool-loop-instructions') and not t.system and t.new[0]['role'] == 'tool':
                t.prev_instructions = json.loads(r['body']).get('instructions')
            if bug('branch-to-tip') and s['next'] is not None:
                s = self.store.tip(p, s['id'])
                r['head'] = s['head']
            last = s['next'] is None and s['head'] == r['head']
            if t.header is not None:
                h = self.store.tip(p, t.header)
                if not last or h is None or h['id'] != s['id']:
                    raise conflict()
            if last:
                self.adopt(t, s)
                t.known = True
                return
            t.path = self.store.history(r['head'])
            t.stored_system = s['system']
            t.parent, t.session_kind = s['id'], 'branch'
            if bug('branch-steals-slug'):
                t.bind = s['slug']
            self.fresh(t)
            held.drop(key)
        except StoreError:
            raise unavailable() from None

    # -- what the model sees --------------------------------------------------------------------------
    async def prepare(self, t, held):
        """Returns the stored answer of a repeated request, or None."""
        await self.resolve(t, held)
        if t.key is not None and not t.degraded:
            try:
                old = self.store.replay(t.principal, self.scope_of(t), t.key)
            except StoreError:
                raise unavailable() from None
            if old is not None:
                if old['fingerprint'] != t.fingerprint:
                    raise ApiError(409, 'The idempotency key belongs to a different request body.', 'idempotency_key_reused', param='Idempotency-Key')
                return json.loads(old['answer'])
        if bug('idem-stuck') and t.key is not None:
            mark = (t.principal, self.scope_of(t), t.key)
            if mark in self.pending:
                raise ApiError(409, 'A request with this idempotency key is still running.', 'session_busy', 'conflict_error', headers={'Retry-After': '1'})
            self.pending.add(mark)
        system = list(t.system)
        if t.derived:
            self.overlay(t)
            t.stored_system = json.dumps(t.system) if t.system else None
        elif not system and t.stored_system:
            system = json.loads(t.stored_system)
        if t.prev_instructions:
            system = [{'role': 'system', 'content': t.prev_instructions}]
        if t.kind == 'chat' and t.header is None and not t.derived:
            t.pre = t.flat = [m for m in t.messages if not convert.is_system(m)]
            t.messages_as_sent = True
            t.stored_system = json.dumps(t.system) if t.system else None
        history = [m for _, m in t.path] + t.pre
        tail = self.tail(t) if t.flat else len(t.new)
        if convert.unanswered(history[:len(history) - tail], history[len(history) - tail:]):
            raise not_found('tool_call', 'messages' if t.kind == 'chat' else 'input')
        if bug('repeat-as-retry') and not t.derived and len(t.new) == 1 and t.new[0]['role'] == 'user':
            i = max((i for i, (_, m) in enumerate(t.path) if m['role'] == 'user'), default=None)
            if i is not None and t.path[i][1] == t.new[0] and all(m['role'] == 'assistant' and not m.get('tool_calls') for _, m in t.path[i + 1:]):
                t.path = t.path[:i]
                history = [m for _, m in t.path] + t.pre
        squeezed = False
        if t.store and not t.degraded and (t.session and t.session['compress'] or convert.size(history) > self.args.context_chars):
            squeezed = await self.compress(t, history, tail)
            history = [m for _, m in t.path] + t.pre
        if t.messages_as_sent and not squeezed:
            seen = t.messages
        else:
            seen = system + history
        t.view = [{k: v for k, v in m.items() if k != '_notes'} for m in convert.view(seen)]
        return None

    def scope_of(self, t):
        if bug('idem-scope-tip') and t.scope is None and t.session:
            return t.session['id']
        return t.scope if t.scope is not None else t.session['root'] if t.session else t.sid

    def tail(self, t):
        n = 0
        while n < len(t.flat) and t.flat[-1 - n]['role'] == 'tool':
            n += 1
        if n:
            return n
        last = max(i for i, m in enumerate(t.flat) if m['role'] == 'user')
        return len(t.flat) - last

    def overlay(self, t):
        """A derived turn: the body is the conversation. What the store has of it already is kept, the rest replaces the rest."""
        flat = [m for m in t.messages if not convert.is_system(m)]
        n = len(t.covers)
        covered = n and len(flat) > n and t.path and (bug('covers-count') or [convert.digest(m) for m in flat[:n]] == t.covers)
        if covered:
            flat = [t.path[0][1]] + flat[n:]
        else:
            t.covers = []
        k = 0
        while k < min(len(flat), len(t.path)) and convert.canon(flat[k]) == convert.canon(t.path[k][1]):
            k += 1
        if bug('regenerate-appends') and k == len(flat):
            k = len(t.path)
        t.flat = flat
        t.messages_as_sent = not covered
        t.path, t.pre = t.path[:k], flat[k:]

    async def compress(self, t, history, tail):
        """Replaces the older turns by notes. False: nothing to replace, or the model could not."""
        older, current = history[:len(history) - tail], history[len(history) - tail:]
        roles = [m['role'] for m in older]
        if current and current[0]['role'] == 'tool' and not bug('cut-through-call'):
            cut = max((i for i, m in enumerate(older) if m.get('tool_calls')), default=0)
        else:
            cut = max((i for i, r in enumerate(roles) if r == 'user'), default=0) or len(older)
            if current[0]['role'] == 'tool':
                cut = len(older)
        if cut < 1:
            return False
        lines = []
        for m in older[:cut]:
            lines.append(f"{m['role']}: {convert.text_of(m)}")
            for c in m.get('tool_calls') or []:
                lines.append(f"  called {c['function']['name']}({c['function']['arguments']})")
        try:
            a = await self.model.plain({'model': t.model, 'messages': [{'role': 'system', 'content': SUMMARY_PROMPT}, {'role': 'user', 'content': '\n'.join(lines)}]})
            notes = a.content
            if not notes:
                raise ApiError(502, 'empty summary', 'upstream_error')
        except ApiError as e:
            log.warning('compression of %s failed: %s', t.sid, e.message)
            if not bug('summary-fallback'):
                return False
            notes = '(earlier messages omitted to fit the context)'
        t.covers = t.covers + [convert.digest(m) for m in older[:cut] if not m.get('_notes')]
        t.path, t.pre = [], [{'role': 'system', 'content': SUMMARY_HEAD + notes, '_notes': True}] + older[cut:] + current
        t.compressed = True
        if t.session is not None and self.args.compaction == 'rotate':
            t.rotated_from, t.sid = t.sid, mint('ses-')
        return True

    def payload(self, t):
        b = t.body
        out = {'model': t.model, 'messages': t.view}
        for k in PASSED:
            if b.get(k) is not None:
                out[k] = b[k]
        if t.stream and isinstance(b.get('stream_options'), dict):
            out['stream_options'] = b['stream_options']
        tools = b.get('tools')
        if tools:
            out['tools'] = [chat_tool(x) for x in tools] if t.kind == 'responses' else tools
        elif 'tool_choice' in out:
            del out['tool_choice']
        if t.kind == 'responses':
            choice = out.get('tool_choice')
            if isinstance(choice, dict) and choice.get('type') == 'function' and isinstance(choice.get('name'), str):
                out['tool_choice'] = {'type': 'function', 'function': {'name': choice['name']}}
            if b.get('max_output_tokens') is not None:
                out['max_tokens'] = b['max_output_tokens']
        return out

    # -- what the client sees ---------------------------------------------------------------------------
    def public_id(self, t):
        if bug('id-255') and t.echo is not None and t.sid == t.header:
            return t.echo
        if self.args.echo == 'alias':
            if t.header is not None:
                return t.header
            if t.derived:
                return convert.derive(self.args.derivation, t.body['messages'])
            if t.session is not None:
                return t.session['root']
        return t.sid

    def early_id(self, t):
        """For the header of a stream: a new id is not told before it is stored."""
        return t.rotated_from if t.rotated_from and self.args.echo == 'tip' else self.public_id(t)

    def session_object(self, t):
        return {'id': self.public_id(t), 'rotated_from': t.rotated_from, 'degraded': t.degraded is not None}

    def finish(self, t, answer, result):
        """Commits the turn, whose answer is the object `result`."""
        scope = self.scope_of(t) if bug('idem-scope-tip') else t.scope
        replay = (scope, t.key, t.fingerprint, result) if t.key is not None else None
        if t.degraded:
            return
        if t.kind == 'responses' and answer.finish == 'length' and bug('length-unstored'):
            return
        if not t.store:
            if replay:
                scope = self.scope_of(t)
                self.store.remember(t.principal, scope, t.key, t.fingerprint, result, scope)
            return
        add = list(t.pre)
        if answer.content or answer.calls or not bug('empty-answer-dropped'):
            add.append(answer.message())
        self.store.commit(Write(
            principal=t.principal, sid=t.sid, base=t.path[-1][0] if t.path else None, base_path=t.path, add=add, rotated_from=t.rotated_from,
            parent=t.parent, kind=t.session_kind, system=t.stored_system, covers=json.dumps(t.covers) if t.covers else None,
            compressed=t.compressed, slug=t.bind, response=result if t.kind == 'responses' else None, replay=replay))
        if t.key is not None:
            self.pending.discard((t.principal, self.scope_of(t), t.key))


def chat_tool(x):
    if x.get('type') == 'function' and 'function' not in x:
        return {'type': 'function', 'function': {k: v for k, v in x.items() if k != 'type'}}
    return x


Turn.messages_as_sent = False
Turn.echo = None
Turn.flat = ()
__all__ = ['Answer', 'Runner', 'Turn']
