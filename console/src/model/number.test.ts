import { expect, it } from 'vitest';
import { number } from './number';

it('takes both decimal marks, and nothing that could be a thousand', () => {
  expect(['0,5', ' 0.5 ', '-3', '1.0005'].map((text) => number(text, 'de'))).toEqual([0.5, 0.5, -3, 1.0005]);
  expect(['1.000', '1.000.000'].map((text) => number(text, 'de'))).toEqual(['1.000', '1.000.000']);
  expect([number('1.000', 'en'), number('1,000', 'en'), number('1,000', 'de')]).toEqual([1, '1,000', 1]);
  expect(['', 'x', '1,5,5'].map((text) => number(text))).toEqual(['', 'x', '1,5,5']);
});
