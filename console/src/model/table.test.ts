import { expect, it } from 'vitest';
import { code, records, uniqueShare, valueRows } from './table';

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
