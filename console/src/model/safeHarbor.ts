// What HIPAA Safe Harbor requires of the columns of a table: the levels that a job takes, and what no job can reach.

import type { Schemas } from '../api/client';

type Risk = Pick<Schemas['ColumnRisk'], 'name' | 'safe_harbor'>;

/** What a person has to look up; nothing is to be done to the column for it. */
const TO_CHECK: readonly string[] = ['population', 'years_of_ages_over_89', 'meaning_of_labels'];

/** By column: the lowest level that the rule permits, as typed in. */
export function permittedLevels(columns: readonly Risk[]): Record<string, string> {
  const found = columns.filter(({ safe_harbor: advice }) => (advice?.level ?? 0) > 0);
  return Object.fromEntries(found.map(({ name, safe_harbor: advice }) => [name, String(advice?.level)]));
}

/** The columns that the rule does not permit as they are declared. */
export function notPermitted(columns: readonly Risk[]): string[] {
  const isOpen = ({ safe_harbor: advice }: Risk): boolean =>
    advice?.missing.some((requirement) => !TO_CHECK.includes(requirement)) ?? false;
  return columns.filter(isOpen).map(({ name }) => name);
}
