// One combination of a sweep, as the API names it.

import type { Schemas } from '../../api/client';
import { decimal } from '../../model/format';
import { i18n } from '../../texts/index.svelte';

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

/** A parameter in words, such as `K 5`, or its value alone. */
export function wordsOf(name: string, value: string | number | null | undefined, isAlone = false): string {
  const words: Readonly<Record<string, string>> = i18n.t.newJob.recodings;
  if (name.length > 1) return words[value ?? '?'] ?? String(value ?? '–');
  const shown = value == null ? '–' : decimal(Number(value), 12);
  return isAlone ? shown : `${name.toUpperCase()} ${shown}`;
}
