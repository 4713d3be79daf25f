// One combination of a sweep, as the API names it.

import type { Schemas } from '../../api/client';

export interface Combination {
  l?: number;
  k?: number;
  c?: number;
  recoding?: Schemas['Recoding'];
  objective?: Schemas['Objective'];
}

/** The parameters that a sweep varies, of one of its items. */
export function combinationOf(item: Schemas['SweepItem'], varied: readonly (keyof Combination)[]): Combination {
  const entries = varied.map((name) => [name, item[name]] as const).filter(([, value]) => value != null);
  return Object.fromEntries(entries) as Combination;
}

/** The parameters in which the items of a sweep differ. */
export function variedIn(items: readonly Schemas['SweepItem'][]): (keyof Combination)[] {
  const names = ['recoding', 'objective', 'l', 'k', 'c'] as const;
  return names.filter((name) => new Set(items.map((item) => item[name] ?? null)).size > 1);
}
