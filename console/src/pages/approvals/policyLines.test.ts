import { expect, it, vi } from 'vitest';
import type { Release } from '../releases/release';
import { en } from '../../texts/en';

vi.mock('../../texts/index.svelte', () => ({ i18n: { language: 'en', t: en } }));
const { lines } = await import('./policyLines');

function release(privacy: object, more: object = {}): Release {
  const roles = { PLZ: 'insensitive', sex: 'quasi_identifier', id: 'identifier', 'Größe': 'quasi_identifier' };
  const columns = Object.entries(roles).map(([name, role]) => ({ name, role, kind: 'categorical' }));
  return { privacy, rows: 90, suppressed_rows: 10, codebook: { columns }, ...more } as unknown as Release;
}
const K_ANONYMITY = { model: 'k_anonymity', k: 10 };
const state = (policy: Parameters<typeof lines>[0], privacy: object, more?: object): string[] =>
  lines(policy, release(privacy, more)).map((line) => line.state);

it('takes the roles of the release, and says where no column has the name', () => {
  const quasi_identifiers = ['PLZ', 'plz', 'sex', 'id', 'Gro\u0308ße '];
  expect(lines({ quasi_identifiers }, release(K_ANONYMITY)).map(({ demand, state, actual }) => [demand.trim(), state, actual])).toEqual([
    ['PLZ', 'unmet', 'insensitive'],
    ['plz', 'absent', ''],
    ['sex', 'met', 'quasi-identifier'],
    ['id', 'met', 'identifier'],
    ['Gro\u0308ße', 'met', 'quasi-identifier'],
  ]);
  expect(state({ quasi_identifiers: ['PLZ'] }, K_ANONYMITY, { codebook: null })).toEqual(['undecided']);
  // Items of a set say what the columns say that it is made from.
  const columns = [{ name: 'drugs', role: 'sensitive', kind: 'set', from: ['drug 1', 'drug 2'] }];
  expect(state({ quasi_identifiers: ['drug 2'] }, K_ANONYMITY, { codebook: { columns } })).toEqual(['unmet']);
});

it('has no line for an empty policy alone', () => {
  expect(state({}, K_ANONYMITY)).toEqual([]);
  expect(state({ require_approval: false }, K_ANONYMITY)).toEqual([]);
  expect(state({ c_max: 0.3, l_min: 3, require_approval: true }, K_ANONYMITY)).toEqual(['inapplicable', 'unmet', 'decision']);
});

it('bounds confidence as the service does', () => {
  const of = (privacy: object, more: object = {}): unknown => state({ c_max: 0.5, ...more }, privacy).at(-1);
  expect(of({ model: 'lkc', l: 2, k: 5, c: 0.5 })).toBe('met');
  expect(of({ model: 'lkc', l: 2, k: 5, c: 0.6 })).toBe('unmet');
  expect(of({ model: 'alpha_k', k: 5, alpha: 0.6 })).toBe('unmet');
  expect(of({ model: 'alpha_k', k: 5, alpha: 0.4, sensitive_values: { d: ['HIV'] } })).toBe('unmet');
  expect(of({ model: 'k_m_anonymity', k: 5, m: 2 })).toBe('unmet');
  expect(of(K_ANONYMITY, { models: ['k_anonymity'] })).toBe('inapplicable');
  // The c of recursive diversity is no confidence.
  expect(of({ model: 'recursive_cl_diversity', k: 5, l: 3, c: 2 })).toBe('inapplicable');
  expect(of({ model: 'distinct_l_diversity', k: 5, l: 1 })).toBe('unmet');
  expect(of({ model: 'l_diversity', k: 5, l: 3, column_limits: { diagnosis: 0 } })).toBe('unmet');
  expect(of({ model: 't_closeness', k: 5, t: 0.3 })).toBe('inapplicable');
  expect(of({ model: 't_closeness', k: 5, t: 1 })).toBe('unmet');
});

it('asks K of every model, L of those that have one, and counts the rows left out', () => {
  expect(state({ k_min: 5, l_min: 3 }, { model: 'confidence_bounding', c: 0.5 })).toEqual(['unmet', 'inapplicable']);
  expect(state({ k_min: 5, l_min: 3 }, { model: 'l_diversity', k: 5, l: 4, column_limits: { units: 2 } })).toEqual(['met', 'unmet']);
  expect(state({ suppression_max: 0.1 }, K_ANONYMITY)).toEqual(['met']);
  expect(state({ suppression_max: 0.09 }, K_ANONYMITY)).toEqual(['unmet']);
});

it('says what became of the approval', () => {
  const of = (status: string): unknown => state({ require_approval: true }, K_ANONYMITY, { approval: { status } });
  expect(['pending', 'approved', 'rejected'].map(of)).toEqual([['decision'], ['met'], ['unmet']]);
});
