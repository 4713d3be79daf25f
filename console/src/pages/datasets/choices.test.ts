import { expect, it } from 'vitest';
import { choices } from './choices';
import type { Column } from './draft.svelte';

it('knows the fields that a person has changed, and no others', () => {
  const proposed: Column[] = [
    { name: 'age', role: 'quasi_identifier', kind: 'categorical' },
    { name: 'hb', role: 'insensitive', kind: 'numeric' },
  ];
  const chosen: Column[] = [
    { name: 'age', role: 'quasi_identifier', kind: 'categorical' },
    { name: 'hb', role: 'sensitive', kind: 'numeric', round: 0.5 },
  ];
  expect(Object.fromEntries(choices(proposed, chosen))).toEqual({ age: {}, hb: { role: 'sensitive', round: 0.5 } });
});
