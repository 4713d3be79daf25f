import { expect, it, vi } from 'vitest';

vi.mock('../texts/index.svelte', () => ({ i18n: { language: 'en' } }));
const { atMost, percent } = await import('./format');

it('does not show nearly nothing as nothing, nor nearly all as all', () => {
  expect([0, 0.0004, 0.0006, 0.5, 0.9994, 0.9996, 1].map((share) => percent(share))).toEqual([
    '0%', '< 0.1%', '0.1%', '50%', '99.9%', '> 99.9%', '100%',
  ]);
  expect(percent(0.004, 0)).toBe('< 1%');
});

it('rounds a bound up, and an exact one not at all', () => {
  expect([1 / 3, 0.1251, 0.07, 0.3, 0.5, 1].map((share) => atMost(share))).toEqual([
    '33.4%', '12.6%', '7%', '30%', '50%', '100%',
  ]);
  for (let thousandth = 0; thousandth <= 1000; thousandth += 1) {
    expect(atMost(thousandth / 1000)).toBe(percent(thousandth / 1000));
  }
});
