// The dataset that a document names; `null` while there is none, and where it is not to be read.

import { api, read, type Schemas } from './client';

export class NamedDataset {
  data = $state.raw<Schemas['Dataset'] | null>(null);

  constructor(id: () => string | undefined) {
    $effect(() => {
      const named = id();
      this.data = null;
      if (!named) return;
      const isCurrent = (): boolean => id() === named;
      read(api.GET('/v1/datasets/{id}', { params: { path: { id: named } } }))
        .then((it) => { if (isCurrent()) this.data = it; }, () => undefined);
    });
  }

  /** Whether *K*, groups and risks count persons rather than rows. */
  get countsPersons(): boolean {
    return hasSubject(this.data?.columns ?? []);
  }
}

export function hasSubject(columns: readonly { readonly role: string }[]): boolean {
  return columns.some((column) => column.role === 'subject');
}
