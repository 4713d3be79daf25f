import { expect, it } from 'vitest';
import { code, records, rounded, uniqueShare, valueRows } from './table';

const FORMAT = { delimiter: ',', decimal: '.', thousands: null, encoding: 'utf-8' };

it('reads quotes, empty cells and all line ends', () => {
  const text = 'a,b\r\n"1,""x""\ny",\n,2\n\n3,"4"';
  expect([...records(text, ',')]).toEqual([['a', 'b'], ['1,"x"\ny', ''], ['', '2'], ['3', '4']]);
});

it('reads an unclosed quote to the end', () => {
  expect([...records('a\n"b\nc', ',')]).toEqual([['a'], ['b\nc']]);
});

it('counts rows that no other equals, by brute force', () => {
  for (let round = 0; round < 100; round += 1) {
    const rows = Array.from({ length: 1 + Math.floor(Math.random() * 30) }, () =>
      Array.from({ length: 3 }, () => String(Math.floor(Math.random() * 4))),
    );
    const table = code(['a,b,c', ...rows.map((row) => row.join(','))].join('\n'), FORMAT, 1000);
    for (const columns of [[], ['a'], ['b', 'c'], ['a', 'b', 'c']]) {
      const keys = rows.map((row) => columns.map((name) => row['abc'.indexOf(name)]).join(' '));
      const unique = keys.filter((key) => keys.filter((other) => other === key).length === 1).length;
      expect(uniqueShare(table, columns)).toBeCloseTo(columns.length === 0 ? 0 : unique / rows.length);
    }
  }
});

it('says when it has read a part only', () => {
  const table = code('a\n1\n2\n3\n', FORMAT, 2);
  expect([table.rows, table.isPart]).toEqual([2, true]);
});

it('counts the rows of each value, by brute force', () => {
  const cells = Array.from({ length: 200 }, () => ['', 'a', ' a ', 'b;c', 'd'][Math.floor(Math.random() * 5)] ?? '');
  const table = code(['x;y', ...cells.map((cell) => `"${cell}";1`)].join('\n'), { ...FORMAT, delimiter: ';' }, 1000);
  const expected = new Map<string, number>();
  for (const cell of cells) expected.set(cell.trim(), (expected.get(cell.trim()) ?? 0) + 1);
  expect(valueRows(table, 'x')).toEqual([...expected].map(([value, rows]) => ({ value, rows })));
  expect(valueRows(table, 'none')).toEqual([]);
});

it('rounds numbers as a release does, and leaves words', () => {
  const cells = ['1.149,99', '1.150', '-1.150', '99', '0,5', '', '-', 'about 5'];
  const format = { ...FORMAT, delimiter: ';', decimal: ',', thousands: '.' };
  const table = code(['a', ...cells.map((cell) => `${cell};`)].join('\n'), format, 100);
  const shown = (round: number, missing?: string[]) =>
    valueRows(rounded(table, { name: 'a', round, missing }, format), 'a').map(({ value, rows }) => `${value}x${String(rows)}`);
  expect(shown(100)).toEqual(['1100x1', '1200x1', '-1200x1', '100x1', '0x1', 'x1', '-x1', 'about 5x1']);
  expect(shown(10_000, ['99'])).toEqual(['0x4', '99x1', 'x1', '-x1', 'about 5x1']);
  const tenths = code('a\n0.15\n0.2\n', FORMAT, 100);
  expect(uniqueShare(tenths, ['a'])).toBe(1);
  expect(uniqueShare(rounded(tenths, { name: 'a', round: 0.1 }, FORMAT), ['a'])).toBe(0);
});
