import { expect, it } from 'vitest';
import { toRows } from './hierarchy';

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
