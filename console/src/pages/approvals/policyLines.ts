// Which lines of a policy a release meets, as far as its document shows.

import type { Schemas } from '../../api/client';
import { percent } from '../../model/format';
import type { Release } from '../releases/release';

export type LineName = 'models' | 'k_min' | 'l_min' | 'c_max' | 'suppression_max' | 'quasi_identifiers' | 'sensitive_values' | 'recipients';

export interface Line {
  readonly name: LineName;
  readonly demand: string;
  readonly actual: string | null;
  /** `null` where the document does not show it. */
  readonly isMet: boolean | null;
}

export function lines(policy: Schemas['Policy'], release: Release, dataset: Schemas['Dataset'] | null): Line[] {
  const privacy = release.privacy as Readonly<Record<string, unknown>>;
  const number = (name: string): number | null => (typeof privacy[name] === 'number' ? privacy[name] : null);
  const found: Line[] = [];
  const add = (name: LineName, demand: string, actual: string | null, isMet: boolean | null): void => {
    found.push({ name, demand, actual, isMet });
  };
  const { models, k_min, l_min, c_max, suppression_max, quasi_identifiers, sensitive_values, recipients } = policy;
  const model = String(privacy['model']);
  if (models) add('models', models.join(', '), model, models.some((word) => word === model));
  const k = number('k');
  if (k_min != null) add('k_min', String(k_min), k === null ? null : String(k), k === null ? null : k >= k_min);
  const l = number('l');
  if (l_min != null && l !== null) add('l_min', String(l_min), String(l), l >= l_min);
  const c = number('c') ?? number('alpha');
  if (c_max != null && c !== null) add('c_max', percent(c_max), percent(c), c <= c_max);
  const all = release.rows + release.suppressed_rows;
  const share = all === 0 ? 0 : release.suppressed_rows / all;
  if (suppression_max != null) add('suppression_max', percent(suppression_max), percent(share), share <= suppression_max);
  if (quasi_identifiers) {
    const roles = new Map((dataset?.columns ?? []).map((column) => [column.name, column.role]));
    const isSafe = (name: string): boolean =>
      ['quasi_identifier', 'identifier', 'subject', undefined].includes(roles.get(name));
    add('quasi_identifiers', quasi_identifiers.join(', '), null, dataset ? quasi_identifiers.every(isSafe) : null);
  }
  if (sensitive_values) add('sensitive_values', Object.keys(sensitive_values).join(', '), null, null);
  if (recipients) add('recipients', recipients.join(', '), null, null);
  return found;
}
