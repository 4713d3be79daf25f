import { expect, it } from 'vitest';
import { frontier, type Candidate } from './frontier';

const isBeaten = (one: Candidate, all: readonly Candidate[]): boolean =>
  all.some(
    (other) =>
      other.risk <= one.risk && other.loss <= one.loss && (other.risk < one.risk || other.loss < one.loss),
  );

it('has those that no other candidate beats, by brute force', () => {
  for (let round = 0; round < 200; round += 1) {
    const number = Math.floor(Math.random() * 12);
    const draw = (): number => Math.floor(Math.random() * 6) / 6;
    const all = Array.from({ length: number }, () => ({ risk: draw(), loss: draw() }));
    const best = frontier(all);
    expect(best.every((one) => !isBeaten(one, all))).toBe(true);
    const key = ({ risk, loss }: Candidate): string => `${String(risk)} ${String(loss)}`;
    const expected = new Set(all.filter((one) => !isBeaten(one, all)).map(key));
    expect(new Set(best.map(key))).toEqual(expected);
  }
});
