// A document that a page shows: loaded when the page is, and again after a new sign-in, and when the service
// comes back.

import { untrack } from 'svelte';
import { connection } from '../connection.svelte';
import { session } from '../session.svelte';
import { asFailure, UNREACHABLE, type Failure } from './problem';

export class Resource<T> {
  data = $state.raw<T | undefined>(undefined);
  failure = $state.raw<Failure | null>(null);
  isLoading = $state(true);
  #load: () => Promise<T>;
  #latest = 0;

  constructor(load: () => Promise<T>) {
    this.#load = load;
    let isFirst = true;
    let wasUnreachable = false;
    $effect(() => {
      void session.generation;
      void connection.returns;
      untrack(() => {
        wasUnreachable = this.failure?.problem.code === UNREACHABLE;
        const wasRefused = this.failure?.problem.status === 401;
        if (isFirst || wasUnreachable || wasRefused) void this.reload();
        isFirst = false;
      });
    });
  }

  async reload(): Promise<void> {
    const turn = (this.#latest += 1);
    this.isLoading = true;
    try {
      const data = await this.#load();
      if (turn !== this.#latest) return;
      this.data = data;
      this.failure = null;
    } catch (thrown) {
      if (turn !== this.#latest) return;
      // What was loaded before may no longer be so.
      this.data = undefined;
      this.failure = asFailure(thrown);
    } finally {
      if (turn === this.#latest) this.isLoading = false;
    }
  }

  /** Shows this in place of what was loaded. */
  set(data: T): void {
    this.#latest += 1;
    this.data = data;
    this.failure = null;
    this.isLoading = false;
  }
}
