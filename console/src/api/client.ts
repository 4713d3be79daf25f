// Calls of the service, typed by its OpenAPI document.

import createClient from 'openapi-fetch';
import { connection } from '../connection.svelte';
import { session, type Caller } from '../session.svelte';
import { Failure, failure, unreachable } from './problem';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

/** `fetch` with the session's token. An answer 401 ends the session, and none at all is said to be so. */
export async function send(request: Request): Promise<Response> {
  if (session.token !== null) request.headers.set('Authorization', `Bearer ${session.token}`);
  const generation = session.generation;
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    connection.lost();
    throw unreachable();
  }
  connection.found();
  if (response.status === 401 && generation === session.generation) session.end('expired');
  return response;
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

/** The document that a call answers with. */
export async function read<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw failure(response.status, error);
  return data as T;
}

/** A call with a body, or of a path that an address names. */
export async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { 'Content-Type': 'application/json' };
  }
  const response = await send(new Request(path, init));
  const text = await response.text();
  let document: unknown = null;
  try {
    document = text === '' ? null : JSON.parse(text);
  } catch {
    if (response.ok) throw failure(response.status, null);
  }
  if (!response.ok) throw failure(response.status, document);
  return document as T;
}

/** All items of a list, oldest first; at most 10,000. */
export async function all<T>(
  page: (query: { limit: number; cursor?: string }) => Promise<{ items: readonly T[]; next_cursor?: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 10; pages += 1) {
    const answer = await page(cursor === undefined ? { limit: 1000 } : { limit: 1000, cursor });
    items.push(...answer.items);
    if (answer.next_cursor == null) break;
    cursor = answer.next_cursor;
  }
  return items;
}

/** Signs in with a token, if the service accepts it. */
export async function signIn(token: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch('/v1/whoami', { headers: { Authorization: `Bearer ${token}` } });
  } catch (error) {
    // A text that is no header value cannot be a token.
    if (error instanceof TypeError && !/^[\x21-\x7e]*$/.test(token)) throw failure(401, null);
    connection.lost();
    throw unreachable();
  }
  connection.found();
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw failure(response.status, body);
  session.begin(token, body as Caller);
}

export { Failure };
