// Privacy models as the job form has them: their parameters, and the job that a filled-in form asks for.

import type { Schemas } from '../api/client';
import { number } from './number';

export type Model = Schemas['ModelWord'];
export type Parameter = 'k' | 'l' | 'c' | 'alpha' | 'm' | 't';
export type Objective = Schemas['Objective'];

interface ModelForm {
  readonly parameters: readonly Parameter[];
  /** The parameters that may be lists, which make a sweep. */
  readonly lists: readonly Parameter[];
  /** Whether it bounds the confidence in listed sensitive values. */
  readonly bounds: boolean;
  /** Whether it takes global recoding. */
  readonly takesGlobal: boolean;
}

const form = (
  parameters: readonly Parameter[],
  lists: readonly Parameter[],
  bounds: boolean,
  takesGlobal = true,
): ModelForm => ({ parameters, lists, bounds, takesGlobal });

export const MODELS: Readonly<Record<Model, ModelForm>> = {
  lkc: form(['l', 'k', 'c'], ['l', 'k', 'c'], true),
  k_anonymity: form(['k'], ['k'], false),
  confidence_bounding: form(['c'], ['c'], true),
  alpha_k: form(['k', 'alpha'], ['k'], true),
  l_diversity: form(['k', 'l'], [], false, false),
  k_m_anonymity: form(['k', 'm'], [], false),
  distinct_l_diversity: form(['k', 'l'], [], false),
  entropy_l_diversity: form(['k', 'l'], [], false),
  recursive_cl_diversity: form(['k', 'l', 'c'], [], false),
  t_closeness: form(['k', 't'], [], false),
};

export interface JobForm {
  dataset: string;
  model: Model;
  /** As typed in. */
  values: Record<Parameter, string>;
  /** Lists as typed in; an empty one leaves the single value. */
  lists: Record<Parameter, string>;
  recoding: '' | 'global' | 'local' | 'both';
  objectives: Objective[];
  output: '' | 'generalized' | 'anatomized';
  suppression: string;
  search: '' | 'greedy' | 'thorough';
  /** By sensitive column: the values to bound, one a line; empty for all. */
  sensitive: Record<string, string>;
  /** By quasi-identifier: the level of its hierarchy below which no label is released; empty for none. */
  levels: Record<string, string>;
  /** By column that is released unchanged although it is nearly a key: why. */
  acknowledged: Record<string, string>;
  release: boolean;
}

export function emptyForm(): JobForm {
  return {
    dataset: '',
    model: 'lkc',
    values: { k: '10', l: '3', c: '0.5', alpha: '0.5', m: '2', t: '0.3' },
    lists: { k: '', l: '', c: '', alpha: '', m: '', t: '' },
    recoding: '',
    objectives: [],
    output: '',
    suppression: '',
    search: '',
    sensitive: {},
    levels: {},
    acknowledged: {},
    release: false,
  };
}

function numbers(text: string): (number | string)[] {
  return text.split(/[;\s]+|,\s+/).filter((part) => part !== '').map((part) => number(part));
}

function lines(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
}

/** The body of `POST /v1/jobs`. */
export function definition(it: JobForm, sensitiveColumns: readonly string[]): Record<string, unknown> {
  const model = MODELS[it.model];
  const privacy: Record<string, unknown> = { model: it.model };
  for (const parameter of model.parameters) {
    const list = model.lists.includes(parameter) ? numbers(it.lists[parameter]) : [];
    privacy[parameter] = list.length > 0 ? list : number(it.values[parameter]);
  }
  const listed = sensitiveColumns
    .map((column) => [column, lines(it.sensitive[column] ?? '')] as const)
    .filter(([, values]) => values.length > 0);
  if (model.bounds && listed.length > 0) privacy['sensitive_values'] = Object.fromEntries(listed);
  const acknowledged = Object.entries(it.acknowledged).filter(([, reason]) => reason.trim() !== '');
  const levels = Object.entries(it.levels).filter(([, level]) => level.trim() !== '');
  const utility = {
    ...(it.objectives.length > 0
      ? { objective: it.objectives.length === 1 ? it.objectives[0] : [...it.objectives] }
      : {}),
    ...(it.search ? { search: it.search } : {}),
  };
  return {
    dataset_id: it.dataset,
    privacy,
    ...(it.recoding ? { recoding: it.recoding === 'both' ? ['global', 'local'] : it.recoding } : {}),
    ...(it.output ? { output: it.output } : {}),
    ...(Object.keys(utility).length > 0 ? { utility } : {}),
    ...(it.suppression.trim() ? { suppression_limit: number(it.suppression) } : {}),
    ...(levels.length > 0
      ? { pre_generalization: Object.fromEntries(levels.map(([column, level]) => [column, { level: number(level) }])) }
      : {}),
    ...(acknowledged.length > 0 ? { acknowledge_unchanged: Object.fromEntries(acknowledged) } : {}),
    ...(it.release ? { release: true } : {}),
  };
}

export type Preset = 'care' | 'research' | 'wide' | 'everyone' | 'compare' | 'opinion' | 'ema' | 'cms' | 'harbor';

/** Where to begin, for a circle of recipients or a guideline; see docs/choosing.md. */
export const PRESETS: Readonly<Record<Preset, Partial<JobForm>>> = {
  care: { model: 'lkc', values: values('5', '3', '0.5'), recoding: '' },
  research: { model: 'lkc', values: values('10', '3', '0.5'), recoding: 'local' },
  wide: { model: 'lkc', values: values('20', '4', '0.2'), recoding: '' },
  everyone: { model: 'k_anonymity', values: values('20', '3', '0.5'), recoding: 'local' },
  opinion: { model: 'alpha_k', values: values('10', '3', '0.5'), recoding: 'local' },
  ema: { model: 'k_anonymity', values: values('12', '3', '0.5'), recoding: 'local' },
  cms: { model: 'k_anonymity', values: values('11', '3', '0.5'), recoding: 'local' },
  // Its levels are those of the table; see safeHarbor.ts.
  harbor: { model: 'k_anonymity', values: values('5', '3', '0.5'), recoding: 'local' },
  compare: { model: 'lkc', values: values('10', '3', '0.5'), recoding: 'both', lists: lists('5 10 20', '2 3') },
};

/** Whether a form still asks for what a preset has set: the guarantee, the recoding, and these levels. */
export function keeps(it: JobForm, preset: Preset, levels: JobForm['levels']): boolean {
  const [asked, set] = [it, { ...emptyForm(), ...PRESETS[preset] }].map((one) => definition(one, []));
  const isSame = (part: string): boolean => JSON.stringify(asked?.[part]) === JSON.stringify(set?.[part]);
  return isSame('privacy') && isSame('recoding') &&
    Object.entries(levels).every(([column, level]) => it.levels[column] === level);
}

function values(k: string, l: string, c: string): JobForm['values'] {
  return { ...emptyForm().values, k, l, c };
}

function lists(k: string, l: string): JobForm['lists'] {
  return { ...emptyForm().lists, k, l };
}

/** The parameters of a job that has been asked for, as one value or several. */
export function parameter(privacy: unknown, name: string): string | undefined {
  const value = (privacy as Readonly<Record<string, unknown>>)[name];
  if (value === undefined || value === null) return undefined;
  return Array.isArray(value) ? value.join(', ') : String(value);
}

/** Whether a job tries several combinations. */
export function isSweep(job: Schemas['JobDefinition']): boolean {
  const varied = [...Object.values(job.privacy), job.recoding, job.utility?.objective];
  return varied.some((value) => Array.isArray(value));
}
