"""The objects and event streams that clients get."""
import json
import time

from store import mint


def chat_object(t, answer, session):
    m = answer.message()
    out = {'object': 'chat.completion', 'id': t.id, 'created': t.created, 'model': t.model, 'system_fingerprint': None,
           'choices': [{'index': 0, 'finish_reason': answer.finish, 'logprobs': None, 'message': {**m, 'refusal': None}}], 'session': session}
    if answer.usage:
        out['usage'] = answer.usage
    return out


def response_object(t, status='in_progress', output=(), answer=None, session=None, error=None):
    b = t.body
    out = {'object': 'response', 'id': t.id, 'status': status, 'created_at': t.created, 'model': t.model, 'output': list(output), 'error': error,
           'incomplete_details': {'reason': 'max_output_tokens'} if status == 'incomplete' else None, 'instructions': b.get('instructions'),
           'metadata': b.get('metadata') or {}, 'parallel_tool_calls': b.get('parallel_tool_calls') is not False, 'previous_response_id': t.prev,
           'conversation': None if t.slug is None else {'id': t.slug}, 'store': t.store, 'temperature': b.get('temperature', 1.0),
           'tool_choice': b.get('tool_choice') or 'auto', 'tools': b.get('tools') or [], 'top_p': b.get('top_p', 1.0), 'text': {'format': {'type': 'text'}}}
    if answer is not None and answer.usage:
        u = answer.usage
        out['usage'] = {'input_tokens': u['prompt_tokens'], 'output_tokens': u['completion_tokens'], 'total_tokens': u['total_tokens'],
                        'input_tokens_details': {'cached_tokens': 0}, 'output_tokens_details': {'reasoning_tokens': 0}}
    if session is not None:
        out['session'] = session
        out['completed_at'] = int(time.time())
    return out


def part(text):
    return {'type': 'output_text', 'annotations': [], 'logprobs': [], 'text': text}


def output_items(answer, message_id):
    out = []
    if answer.content is not None or not answer.calls:
        done = 'incomplete' if answer.finish == 'length' else 'completed'
        out.append({'type': 'message', 'id': message_id, 'role': 'assistant', 'status': done, 'content': [part(answer.content or '')]})
    for c in answer.calls:
        out.append({'type': 'function_call', 'id': mint('fc_', 12), 'call_id': c['id'], 'status': 'completed', 'name': c['function']['name'], 'arguments': c['function']['arguments']})
    return out


class ChatEvents:
    """Writes a chat stream. `head` and `tail` surround the pieces."""

    def __init__(self, t, sse, announces):
        self.t, self.sse, self.announces = t, sse, announces

    def chunk(self, delta, finish=None, **more):
        choices = [] if delta is None else [{'index': 0, 'delta': delta, 'logprobs': None, 'finish_reason': finish}]
        return {'object': 'chat.completion.chunk', 'id': self.t.id, 'created': self.t.created, 'model': self.t.model, 'choices': choices, **more}

    async def head(self):
        await self.sse.send(self.chunk({'role': 'assistant', 'content': ''}))

    async def text(self, piece):
        await self.sse.send(self.chunk({'content': piece}))

    async def call(self, delta):
        await self.sse.send(self.chunk({'tool_calls': [delta]}))

    async def tail(self, result):
        choice, session = result['choices'][0], result['session']
        if self.announces == 'event':
            await self.sse.send(self.chunk({}, choice['finish_reason']))
            if session['rotated_from']:
                await self.sse.send(self.chunk(None, session=session), 'session')
        else:
            await self.sse.send(self.chunk({}, choice['finish_reason'], session=session))
        options = self.t.body.get('stream_options') or {}
        if isinstance(options, dict) and options.get('include_usage') and result.get('usage'):
            await self.sse.send(self.chunk(None, usage=result['usage']))
        await self.sse.send('[DONE]')

    async def fail(self, error):
        await self.sse.send(error.body())
        await self.sse.send('[DONE]')

    async def replay(self, result):
        self.t.id, self.t.created = result['id'], result['created']
        m = result['choices'][0]['message']
        await self.head()
        if m.get('content'):
            await self.text(m['content'])
        for i, c in enumerate(m.get('tool_calls') or []):
            await self.call({'index': i, **c})
        await self.tail(result)


class ResponseEvents:
    def __init__(self, t, sse, announces):
        self.t, self.sse, self.n = t, sse, 0
        self.message_id, self.open, self.text_so_far = mint('msg_', 12), False, []

    async def send(self, type_, **more):
        await self.sse.send({'type': type_, 'sequence_number': self.n, **more}, type_)
        self.n += 1

    async def head(self):
        r = response_object(self.t)
        await self.send('response.created', response=r)
        await self.send('response.in_progress', response=r)

    async def text(self, piece):
        if not self.open:
            self.open = True
            await self.send('response.output_item.added', output_index=0, item={'type': 'message', 'id': self.message_id, 'role': 'assistant', 'status': 'in_progress', 'content': []})
            await self.send('response.content_part.added', output_index=0, content_index=0, item_id=self.message_id, part=part(''))
        await self.send('response.output_text.delta', output_index=0, content_index=0, item_id=self.message_id, delta=piece, logprobs=[])

    async def call(self, delta):
        pass                           # a call is told when it is complete

    async def tail(self, result):
        for i, item in enumerate(result['output']):
            if item['type'] == 'message':
                self.message_id = item['id']
                if not self.open:
                    await self.text('')
                text = item['content'][0]['text']
                place = {'output_index': i, 'content_index': 0, 'item_id': item['id']}
                await self.send('response.output_text.done', text=text, logprobs=[], **place)
                await self.send('response.content_part.done', part=item['content'][0], **place)
            else:
                await self.send('response.output_item.added', output_index=i, item={**item, 'status': 'in_progress', 'arguments': ''})
                await self.send('response.function_call_arguments.delta', output_index=i, item_id=item['id'], delta=item['arguments'])
                await self.send('response.function_call_arguments.done', output_index=i, item_id=item['id'], arguments=item['arguments'])
            await self.send('response.output_item.done', output_index=i, item=item)
        await self.send('response.' + result['status'], response=result)

    async def fail(self, error):
        await self.send('response.failed', response=response_object(self.t, 'failed', error={'code': 'server_error', 'message': error.message}))

    async def replay(self, result):
        self.t.id, self.t.created = result['id'], result['created_at']
        await self.head()
        for item in result['output']:
            if item['type'] == 'message':
                self.message_id = item['id']
                await self.text(item['content'][0]['text'])
        await self.tail(result)


def dumps(x):
    return json.dumps(x)
