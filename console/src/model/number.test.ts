import { expect, it } from 'vitest';
import { number, written } from './number';

it('takes both decimal marks, and nothing that could be a thousand', () => {
  expect(['0,5', ' 0.5 ', '-3', '1.0005'].map((text) => number(text, 'de'))).toEqual([0.5, 0.5, -3, 1.0005]);
  expect(['1.000', '1.000.000'].map((text) => number(text, 'de'))).toEqual(['1.000', '1.000.000']);
  expect([number('1.000', 'en'), number('1,000', 'en'), number('1,000', 'de')]).toEqual([1, '1,000', 1]);
  expect(['', 'x', '1,5,5'].map((text) => number(text))).toEqual(['', 'x', '1,5,5']);
});

it('writes the mark of the language, and reads it again', () => {
  expect([written(0.5, 'de'), written('0.5', 'en'), written('0,5', 'de'), written(null, 'de')]).toEqual(['0,5', '0.5', '0,5', '']);
  expect(number(written(1.125, 'de'), 'de')).toBe(1.125);
});
