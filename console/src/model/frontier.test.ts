import { expect, it } from 'vitest';
import { frontier, type Candidate } from './frontier';

const at = (risk: number, loss: number, more: Partial<Candidate> = {}): Candidate => ({ risk, loss, ...more });

it('has those that no other candidate beats, by growing loss', () => {
  const [risky, middle, worse, safe, twin] = [at(0.5, 0.1), at(0.1, 0.2), at(0.1, 0.5), at(0.01, 0.9), at(0.1, 0.2)];
  expect(frontier([safe, worse, middle, risky, twin])).toEqual([risky, middle, twin, safe]);
  expect(frontier([])).toEqual([]);
});

it('does not let a weaker promise beat a stronger one', () => {
  const weak = at(0.1, 0.1, { l: 2, c: 0.5 });
  const strong = at(0.1, 0.5, { l: 3, c: 0.5 });
  expect(frontier([weak, strong])).toEqual([weak, strong]);
  const best = at(0.1, 0.1, { l: 3, c: 0.4 });
  expect(frontier([weak, strong, best])).toEqual([weak, best]);
  // Of all attributes, but without a bound.
  expect(frontier([strong, at(0.1, 0.1)])).toEqual([at(0.1, 0.1), strong]);
  expect(frontier([strong, at(0.1, 0.1, { c: 0.5 })])).toEqual([at(0.1, 0.1, { c: 0.5 })]);
});
