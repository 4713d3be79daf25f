import { expect, it } from 'vitest';
import { comparison, releaseOf, sourcesIn, tableOf } from './sources';

const ID = '0192f0c1-7a52-7c3e-9d3b-4c8f5e6a7b01';
const read = (address: string) => sourcesIn(new URLSearchParams(address.split('?')[1]));

it('reads the address that it writes', () => {
  const tables = [tableOf(ID, 3, { k: 5, c: 0.5, recoding: 'local' }), tableOf(ID, undefined, {}), releaseOf(ID)];
  for (const one of tables) {
    for (const other of tables) {
      expect(read(comparison(one, other))?.map((source) => source.path)).toEqual([one, other]);
    }
  }
  expect(read(comparison(tableOf(ID, 3, { k: 5 }), releaseOf(ID)))?.[0].query.get('k')).toBe('5');
});

it('takes no other paths from an address', () => {
  for (const path of ['tokens', `releases/${ID}/data`, `releases/../tokens/${ID}/report`, `jobs/${ID}/report#x`, '//evil.example']) {
    expect(read(comparison(path, releaseOf(ID)))).toBeNull();
  }
  expect(read('#/compare')).toBeNull();
});
