// A privacy model for people: what it means in a sentence, and its parameters in a line.

import { atMost } from './format';
import type { Texts } from '../texts/en';
import { MODELS, parameter, type Model, type Parameter } from './privacy';

export interface About {
  /** Whether *K* counts persons, not rows. */
  readonly ofPersons: boolean;
  readonly hasSensitive?: boolean;
}

/** In the words of `t`; `undefined` while a parameter is missing, and for a confidence that is none. */
export function meaning(t: Texts, privacy: { readonly model: string }, about: About): string | undefined {
  const model = privacy.model as Model;
  if (!(model in MODELS)) return undefined;
  const get = (name: string): string => parameter(privacy, name) ?? '';
  const names = MODELS[model].parameters;
  if (names.some((name) => get(name) === '')) return undefined;
  const listed = (privacy as { sensitive_values?: Readonly<Record<string, readonly string[]>> }).sensitive_values;
  // An empty list has values that are not shown, such as those of a deleted dataset.
  const columns = Object.entries(listed ?? {}).map(([column, values]) => `${column}: ${values.join(' | ')}`);
  const what = listed == null ? t.meaning.any : columns.length > 0 ? t.meaning.listed(columns.join(', ')) : t.meaning.listedHidden;
  const m = t.meaning;
  const { ofPersons } = about;
  const k = get('k');
  const unit = t.units.name(ofPersons);
  const bounds = MODELS[model].bounds ? (get('c') || get('alpha')).split(', ').map(Number) : [];
  if (!bounds.every((bound) => bound > 0 && bound <= 1)) return undefined;
  const c = bounds.map((bound) => atMost(bound)).join(', ');
  /** A confidence of 1 bounds nothing. */
  const isBounded = bounds.some((bound) => bound < 1);
  switch (model) {
    case 'lkc':
      if (about.hasSensitive === false) return m.lkc(get('l'), k, unit, '');
      if (!isBounded) return `${m.lkc(get('l'), k, unit, '')} ${m.notBounded}`;
      return m.lkc(get('l'), k, unit, m.lkcBound(c, what, ofPersons));
    case 'k_anonymity':
      return `${m.kAnonymity(k, unit)} ${m.notBounded}`;
    case 'confidence_bounding':
      return isBounded ? m.confidenceBounding(c, what, ofPersons) : m.notBounded;
    case 'alpha_k':
      return isBounded ? m.alphaK(k, c, what, unit, ofPersons) : `${m.kAnonymity(k, unit)} ${m.notBounded}`;
    case 'k_m_anonymity':
      return m.kM(k, get('m'), unit);
    case 't_closeness':
      return m.tCloseness(k, get('t'), unit);
    case 'l_diversity':
    case 'distinct_l_diversity':
    case 'entropy_l_diversity':
    case 'recursive_cl_diversity':
      return m.diversity(k, get('l'), unit);
  }
}

/** The parameters of a model in a line, such as `L = 4 · K = 20 · C = 20 %`. */
export function parameters(privacy: { readonly model?: string }): string {
  const model = privacy.model as Model;
  const names = model in MODELS ? MODELS[model].parameters.filter((name) => parameter(privacy, name) !== undefined) : [];
  const isShare = (name: Parameter): boolean => name === 'alpha' || (name === 'c' && model !== 'recursive_cl_diversity');
  const shown = names.map((name) => {
    const value = parameter(privacy, name) ?? '';
    return `${SYMBOLS[name]} = ${isShare(name) ? atMost(Number(value)) : value}`;
  });
  return shown.join(' · ');
}

const SYMBOLS: Readonly<Record<Parameter, string>> = { k: 'K', l: 'L', c: 'C', alpha: 'α', m: 'm', t: 't' };
