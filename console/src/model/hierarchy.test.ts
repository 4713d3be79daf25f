import { expect, it } from 'vitest';
import { levelsOf, toRows } from './hierarchy';

it('writes a row for each leaf, and repeats labels where a branch is short', () => {
  const root = {
    label: '*',
    children: [
      { label: 'Office', children: [{ label: 'Clerk' }, { label: 'Head; deputy' }] },
      { label: 'Nurse' },
    ],
  };
  expect(toRows(root)).toBe('Clerk;Office;*\n"Head; deputy";Office;*\nNurse;Nurse;*\n');
});

it('gives each label the level that a job can ask for, and names every label once', () => {
  const leaf = (label: string) => ({ label });
  const root = { label: '*', children: [{ label: 'Office', children: [leaf('Clerk'), leaf('Head')] }, leaf('Nurse')] };
  expect(levelsOf(root)).toEqual([
    { level: 2, labels: ['*'] },
    { level: 1, labels: ['Office'] },
    { level: 0, labels: ['Clerk', 'Head', 'Nurse'] },
  ]);
  const wide = { label: '*', children: Array.from({ length: 200_000 }, (_, at) => leaf(String(at))) };
  expect(levelsOf(wide).map(({ labels }) => labels.length)).toEqual([1, 200_000]);
});
