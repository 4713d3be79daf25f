import { expect, it, vi } from 'vitest';
import { en } from '../texts/en';

vi.mock('../texts/index.svelte', () => ({ i18n: { language: 'en' } }));
const { meaning } = await import('./meaning');

const lkc = (c: number | string, ofPersons: boolean, l = 3): string | undefined =>
  meaning(en, { model: 'lkc', l, k: 5, c } as { model: string }, { ofPersons });

it('says what C bounds: what is inferred of a row, and of persons the share of their rows', () => {
  expect(lkc(0.5, false)).toMatch(/5 matching rows, and infers no sensitive value with a confidence above 50%\.$/);
  expect(lkc(0.5, true, 1)).toMatch(/knows one value .* 5 matching persons, and in their rows no sensitive value with a share above 50%\.$/);
});

it('does not state a confidence of 1 as a bound, and says nothing of one that is none', () => {
  expect(lkc(1, true)).toMatch(/5 matching persons\. Sensitive values are not bounded\.$/);
  const about = { ofPersons: false };
  expect(meaning(en, { model: 'confidence_bounding', c: 1 } as { model: string }, about)).toBe('Sensitive values are not bounded.');
  expect(meaning(en, { model: 'alpha_k', k: 5, alpha: 1 } as { model: string }, about)).toMatch(/quasi-identifiers\. Sensitive values/);
  for (const c of [30, 0, -1, 'half']) expect(lkc(c, false)).toBeUndefined();
});
