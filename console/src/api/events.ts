// Server-sent events. `EventSource` cannot send a token.

import { EventParser, type ServerEvent } from '../model/eventStream';
import { send } from './client';
import { failure } from './problem';

/** The events of a stream, until it ends. */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await send(new Request(path, { headers: { Accept: 'text/event-stream' }, signal }));
  if (!response.ok) throw failure(response.status, await response.json().catch(() => null));
  if (response.body === null) return;
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield* parser.push(value);
  }
}
