// Files that are sent and fetched.

import { connection } from '../connection.svelte';
import { session } from '../session.svelte';
import { send } from './client';
import { failure, unreachable } from './problem';

/** How the text of a file is written. */
export interface TextFormat {
  delimiter: string;
  decimal: string;
  thousands?: string | null;
  encoding: string;
}

export interface FileKind {
  readonly mediaType: string;
  readonly contentEncoding?: 'gzip' | 'zstd';
  readonly isText: boolean;
}

/** The kind of a file, by the ending of its name; text where the ending says nothing. */
export function kindOf(name: string): FileKind {
  const lower = name.toLowerCase();
  const packed = /\.(gz|zst)$/.exec(lower);
  const inner = packed ? lower.slice(0, packed.index) : lower;
  const encoding = packed ? { contentEncoding: packed[1] === 'gz' ? ('gzip' as const) : ('zstd' as const) } : {};
  if (inner.endsWith('.parquet')) {
    return { mediaType: 'application/vnd.apache.parquet', isText: false, ...encoding };
  }
  if (inner.endsWith('.ndjson') || inner.endsWith('.jsonl')) {
    return { mediaType: 'application/x-ndjson', isText: false, ...encoding };
  }
  if (inner.endsWith('.tsv')) return { mediaType: 'text/tab-separated-values', isText: true, ...encoding };
  return { mediaType: 'text/csv', isText: true, ...encoding };
}

function headers(kind: FileKind): Record<string, string> {
  return {
    'Content-Type': kind.mediaType,
    ...(kind.contentEncoding ? { 'Content-Encoding': kind.contentEncoding } : {}),
  };
}

/** The query that says how text is written. */
export function formatQuery(kind: FileKind, format: TextFormat | null): URLSearchParams {
  const query = new URLSearchParams();
  if (format === null || !kind.isText) return query;
  query.set('delimiter', format.delimiter === '\t' ? 'tab' : format.delimiter);
  query.set('decimal', format.decimal);
  if (format.thousands) query.set('thousands', format.thousands);
  query.set('encoding', format.encoding);
  return query;
}

/** What is read of a long text for a draft, in bytes. */
const DRAFT_BYTES = 32 << 20;

/** The beginning of a file, up to the end of a line; all of a file that cannot be cut. */
async function beginning(file: File, kind: FileKind): Promise<Blob> {
  const canBeCut = kind.contentEncoding === undefined && kind.mediaType !== 'application/vnd.apache.parquet';
  if (!canBeCut || file.size <= DRAFT_BYTES) return file;
  const bytes = new Uint8Array(await file.slice(0, DRAFT_BYTES).arrayBuffer());
  const end = bytes.lastIndexOf(0x0a);
  return new Blob([bytes.subarray(0, end < 0 ? bytes.length : end + 1)]);
}

/** Asks for the draft of a dataset. */
export async function draft<T>(file: File, name: string, format: TextFormat | null): Promise<T> {
  const kind = kindOf(file.name);
  const query = formatQuery(kind, format);
  query.set('name', name);
  const body = await beginning(file, kind);
  const request = new Request(`/v1/datasets/draft?${query.toString()}`, {
    method: 'POST',
    headers: headers(kind),
    body,
  });
  const response = await send(request);
  const document: unknown = await response.json().catch(() => null);
  if (!response.ok) throw failure(response.status, document);
  return document as T;
}

/** A file on its way. */
export interface Upload<T> {
  readonly done: Promise<T>;
  abort(): void;
}

/** Sends a file. `fetch` does not say how much of a body is sent. */
export function upload<T>(path: string, file: File, onProgress: (share: number) => void): Upload<T> {
  const request = new XMLHttpRequest();
  const done = new Promise<T>((resolve, reject) => {
    request.open('POST', path);
    for (const [name, value] of Object.entries(headers(kindOf(file.name)))) request.setRequestHeader(name, value);
    if (session.token !== null) request.setRequestHeader('Authorization', `Bearer ${session.token}`);
    request.responseType = 'json';
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    request.onload = () => {
      connection.found();
      if (request.status === 401) session.end('expired');
      if (request.status >= 200 && request.status < 300) resolve(request.response as T);
      else reject(failure(request.status, request.response));
    };
    request.onerror = () => {
      connection.lost();
      reject(unreachable());
    };
    request.onabort = () => {
      reject(new DOMException('', 'AbortError'));
    };
    request.send(file);
  });
  return { done, abort: () => { request.abort(); } };
}

/** Fetches a file and hands it to the browser, which saves it. A link cannot carry the token. */
export async function download(path: string, name: string): Promise<void> {
  const response = await send(new Request(path));
  if (!response.ok) throw failure(response.status, await response.json().catch(() => null));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName(response.headers.get('Content-Disposition')) ?? name;
  link.click();
  // The browser reads the data after the click.
  setTimeout(() => { URL.revokeObjectURL(url); }, 60_000);
}

export function fileName(disposition: string | null): string | undefined {
  return /filename="([^"/\\]+)"/.exec(disposition ?? '')?.[1];
}
