// What a person has changed of a draft.

import type { Column } from './draft.svelte';

/** By column, the fields that a person gave another value than the proposed one. */
export function choices(proposed: readonly Column[], chosen: readonly Column[]): Map<string, Partial<Column>> {
  const before = new Map(proposed.map((column) => [column.name, column]));
  return new Map(chosen.map((column) => {
    const fields = Object.entries(column) as [keyof Column, unknown][];
    const isChosen = ([field, value]: [keyof Column, unknown]): boolean =>
      JSON.stringify(before.get(column.name)?.[field]) !== JSON.stringify(value);
    return [column.name, Object.fromEntries(fields.filter(isChosen))];
  }));
}
