import { expect, it } from 'vitest';
import { notPermitted, permittedLevels } from './safeHarbor';

const COLUMNS = [
  { name: 'zip', safe_harbor: { category: 'geographic_subdivisions', level: 2, missing: ['population'] } },
  { name: 'age', safe_harbor: { category: 'dates', level: 0, missing: [] } },
  { name: 'admitted', safe_harbor: { category: 'dates', missing: ['year_only', 'years_of_ages_over_89'] } },
  { name: 'sex' },
] as const;

it('takes the levels that the rule asks for', () => {
  expect(permittedLevels(structuredClone(COLUMNS) as never)).toEqual({ zip: '2' });
});

it('names the columns that no level helps', () => {
  expect(notPermitted(structuredClone(COLUMNS) as never)).toEqual(['admitted']);
});
