// A policy as its page has it: what is typed in, and the document that it asks for.

import type { Schemas } from '../api/client';
import { written } from './number';
import type { Model } from './privacy';

export type Policy = Schemas['Policy'];

export interface PolicyForm {
  models: Model[];
  k_min: string;
  l_min: string;
  c_max: string;
  suppression_max: string;
  quasi_identifiers: string;
  recipients: string;
  require_approval: boolean;
  sensitive_values: string;
}

const line = (column: string, listed: Schemas['BoundedValues']): string =>
  `${column}: ${Array.isArray(listed) ? listed.join(' | ') : listed}`;
const lines = (text: string): string[] => text.split('\n').map((one) => one.trim());
const names = (text: string): string[] => lines(text).filter((one) => one !== '');

export function fill(it: Policy, language = 'en'): PolicyForm {
  const text = (value: number | null | undefined): string => written(value, language);
  return {
    models: it.models ?? [],
    k_min: text(it.k_min),
    l_min: text(it.l_min),
    c_max: text(it.c_max),
    suppression_max: text(it.suppression_max),
    quasi_identifiers: (it.quasi_identifiers ?? []).join('\n'),
    recipients: (it.recipients ?? []).join('\n'),
    require_approval: it.require_approval ?? false,
    sensitive_values: Object.entries(it.sensitive_values ?? {}).map(([column, listed]) => line(column, listed)).join('\n'),
  };
}

/**
 * The values to bound by column, and the numbers of the lines that are not one column, one colon and values. A line
 * of `filled`, from which the form was filled, means what it has there: its names may have colons.
 */
export function bounded(text: string, filled: Policy): { values: Record<string, Schemas['BoundedValues']>; wrong: number[] } {
  const known = new Map(Object.entries(filled.sensitive_values ?? {}).map((one) => [line(...one), one]));
  const values = new Map<string, Schemas['BoundedValues']>();
  const wrong: number[] = [];
  for (const [index, typed] of lines(text).entries()) {
    if (typed === '') continue;
    const [column = '', listed = '', ...more] = typed.split(':').map((part) => part.trim());
    const parts = listed.split('|').map((value) => value.trim());
    const own = known.get(typed) ?? [column, listed === 'all' ? 'all' : parts] as const;
    const isRead = known.has(typed) || (column !== '' && more.length === 0 && !parts.includes(''));
    if (isRead && !values.has(own[0])) values.set(...own);
    else wrong.push(index + 1);
  }
  return { values: Object.fromEntries(values), wrong };
}

/** The body of `PUT /v1/policy`. */
export function policyBody(it: PolicyForm, filled: Policy): Record<string, unknown> {
  const number = (text: string): number | string => {
    const value = Number(text.trim().replace(',', '.'));
    return Number.isNaN(value) ? text : value;
  };
  const { values } = bounded(it.sensitive_values, filled);
  return {
    ...(it.models.length > 0 ? { models: it.models } : {}),
    ...Object.fromEntries(
      (['k_min', 'l_min', 'c_max', 'suppression_max'] as const)
        .filter((name) => it[name].trim() !== '')
        .map((name) => [name, number(it[name])]),
    ),
    ...(names(it.quasi_identifiers).length > 0 ? { quasi_identifiers: names(it.quasi_identifiers) } : {}),
    ...(names(it.recipients).length > 0 ? { recipients: names(it.recipients) } : {}),
    ...(it.require_approval ? { require_approval: true } : {}),
    ...(Object.keys(values).length > 0 ? { sensitive_values: values } : {}),
  };
}
