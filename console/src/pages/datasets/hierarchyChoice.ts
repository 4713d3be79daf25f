// The hierarchy of a column as a choice: none, a tree, a saved one, or a generated one with parameters.

import type { Schemas } from '../../api/client';

type Reference = Schemas['TaxonomyReference'];
export type Generated = Schemas['GeneratedHierarchy'];
export type Generator = Generated['generate'];

const OF_TEXT: readonly Generator[] = ['prefix', 'mask_right', 'mask_left', 'ordered', 'rare'];

/** The generators that fit a kind. */
export const GENERATORS: Readonly<Record<Schemas['ColumnKind'], readonly Generator[]>> = {
  categorical: OF_TEXT,
  numeric: ['ranges'],
  date: ['calendar', 'age'],
  datetime: ['calendar'],
  set: OF_TEXT,
};

export function isGenerator(taxonomy: Reference | null | undefined): taxonomy is Generated {
  return typeof taxonomy === 'object' && taxonomy !== null && 'generate' in taxonomy;
}

/** What is chosen: '' for none, 'tree', the id of a saved one, or the word of a generator. */
export function choiceOf(taxonomy: Reference | null | undefined): string {
  if (taxonomy == null) return '';
  if (typeof taxonomy === 'string') return taxonomy;
  return isGenerator(taxonomy) ? taxonomy.generate : 'tree';
}

/** The hierarchy of a choice; a tree or parameters that the draft had are used again. */
export function hierarchyOf(choice: string, drafted: Reference | null | undefined): Reference | undefined {
  if (choice === '') return undefined;
  if (drafted != null && choiceOf(drafted) === choice) return structuredClone(drafted);
  const isWord = Object.values(GENERATORS).some((words) => (words as readonly string[]).includes(choice));
  if (!isWord) return choice;
  if (choice === 'age') return { generate: 'age', at: new Date().toISOString().slice(0, 10) };
  return { generate: choice } as Generated;
}

export type ParameterName = 'lengths' | 'order' | 'fanout' | 'start' | 'widths' | 'levels' | 'at' | 'below';

/** What a person may type in for a parameter. */
export const EXAMPLES: Readonly<Record<ParameterName, string>> = {
  lengths: '3, 1',
  order: 'low, mid, high',
  fanout: '2',
  start: '0',
  widths: '10, 50',
  levels: 'month, year',
  at: '2026-12-31',
  below: '20',
};

export interface Parameter {
  readonly name: ParameterName;
  readonly text: string;
  /** The hierarchy with the parameter as this text; without it where the text is empty. */
  set(text: string): Generated;
}

const NAMES: Readonly<Record<Generator, readonly ParameterName[]>> = {
  prefix: ['lengths'],
  mask_right: [],
  mask_left: [],
  ordered: ['order', 'fanout'],
  ranges: ['start', 'widths'],
  calendar: ['levels'],
  age: ['at', 'widths'],
  rare: ['below'],
};
const LISTS: readonly ParameterName[] = ['lengths', 'order', 'widths', 'levels'];
const TEXTS: readonly ParameterName[] = ['order', 'levels', 'at'];

export function parametersOf(generated: Generated): Parameter[] {
  const values = generated as Readonly<Record<string, unknown>>;
  return NAMES[generated.generate].map((name) => {
    const value = values[name];
    return {
      name,
      text: Array.isArray(value) ? value.join(', ') : value == null ? '' : String(value),
      set: (text) => {
        const { [name]: _, ...others } = values;
        const parts = text.split(',').map((part) => part.trim()).filter((part) => part !== '');
        const parsed = TEXTS.includes(name) ? parts : parts.map(Number);
        const given = LISTS.includes(name) ? parsed : parsed[0];
        return (parts.length === 0 ? others : { ...others, [name]: given }) as Generated;
      },
    };
  });
}
