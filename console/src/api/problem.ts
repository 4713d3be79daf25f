// What went wrong: the problem document of the service, or one of our own where there was no answer.

import { session } from '../session.svelte';
import type { components } from './schema';

export type ProblemDocument = components['schemas']['ProblemDocument'];
export type Fault = components['schemas']['Fault'];

/** An error with a problem document. */
export class Failure extends Error {
  /** The sign-in in which it happened. */
  readonly generation = session.generation;

  constructor(readonly problem: ProblemDocument) {
    super(problem.detail);
  }

  /** Whether the service does not know the path at all, as one without this feature does. */
  get isUnknownPath(): boolean {
    return this.problem.code === 'not_found' && this.problem.detail.includes('there is no such path');
  }
}

/** The code of the problem that the service does not answer. */
export const UNREACHABLE = 'unreachable';

export function unreachable(): Failure {
  return new Failure({ type: 'about:blank', title: '', status: 0, code: UNREACHABLE, detail: '' });
}

/** The failure that an answer carries. */
export function failure(status: number, body: unknown): Failure {
  if (typeof body === 'object' && body !== null && 'code' in body && 'detail' in body) {
    return new Failure(body as ProblemDocument);
  }
  const title = `HTTP ${String(status)}`;
  return new Failure({ type: 'about:blank', title, status, code: 'unknown', detail: title });
}

/** The failure of anything that was thrown. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return new Failure({ type: 'about:blank', title: '', status: 0, code: 'console', detail });
}

/** What is wrong with the field at a JSON pointer, or below it. */
export function faultAt(problem: ProblemDocument | null | undefined, pointer: string): string | undefined {
  const isBelow = (fault: Fault): boolean =>
    fault.pointer === pointer || (fault.pointer ?? '').startsWith(pointer + '/');
  const faults = (problem?.errors ?? []).filter(isBelow);
  const texts = faults.map((fault) => [fault.detail, fault.suggested_fix].filter(Boolean).join('; '));
  return texts.length > 0 ? texts.join('. ') : undefined;
}

/** A JSON pointer of these keys. */
export function pointer(...keys: (string | number)[]): string {
  return keys.map((key) => '/' + String(key).replaceAll('~', '~0').replaceAll('/', '~1')).join('');
}
