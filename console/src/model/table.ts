// A text table that a person has chosen, read in the browser: what its unchanged columns single out, while
// the roles are still being decided. Nothing of it leaves the page.

import type { TextFormat } from '../api/files';

/** A table as codes: equal cells of a column have equal codes. */
export interface CodedTable {
  readonly columns: readonly string[];
  readonly codes: ReadonlyMap<string, Int32Array>;
  /** By column: the cell of each code. */
  readonly cells: ReadonlyMap<string, readonly string[]>;
  readonly rows: number;
  /** Whether rows were left out because there are too many. */
  readonly isPart: boolean;
}

/** The records of a text with quoted cells (RFC 4180); the last one may lack its line break. */
export function* records(text: string, delimiter: string): Generator<string[]> {
  let cells: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = '';
    if (text[at] === '"') {
      at += 1;
      for (;;) {
        const quote = text.indexOf('"', at);
        if (quote < 0) {
          cell += text.slice(at);
          at = text.length;
          break;
        }
        cell += text.slice(at, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        cell += '"';
        at += 1;
      }
    }
    let end = at;
    while (end < text.length && text[end] !== delimiter && text[end] !== '\n' && text[end] !== '\r') end += 1;
    cells.push(cell + text.slice(at, end));
    at = end;
    if (text[at] === delimiter) {
      at += 1;
      if (at < text.length) continue;
      cells.push('');
    }
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    at += 1;
    if (cells.length > 1 || cells[0] !== '') yield cells;
    cells = [];
  }
}

/** Codes of at most `limit` rows. */
export function code(text: string, format: TextFormat, limit: number): CodedTable {
  const delimiter = format.delimiter === 'tab' ? '\t' : format.delimiter;
  const source = records(text, delimiter);
  const header = source.next();
  const columns = header.done ? [] : header.value.map((name) => name.trim());
  const dictionaries = columns.map(() => new Map<string, number>());
  const codes = columns.map((): number[] => []);
  let rows = 0;
  let isPart = false;
  for (const record of source) {
    if (rows === limit) {
      isPart = true;
      break;
    }
    rows += 1;
    dictionaries.forEach((dictionary, column) => {
      const cell = (record[column] ?? '').trim();
      let value = dictionary.get(cell);
      if (value === undefined) {
        value = dictionary.size;
        dictionary.set(cell, value);
      }
      codes[column]?.push(value);
    });
  }
  const coded = new Map(columns.map((name, column) => [name, Int32Array.from(codes[column] ?? [])]));
  const cells = new Map(columns.map((name, column) => [name, [...(dictionaries[column]?.keys() ?? [])]]));
  return { columns, codes: coded, cells, rows, isPart };
}

export interface ValueRows {
  readonly value: string;
  readonly rows: number;
}

/** The distinct cells of a column, in the order of the table, with how many rows have each. */
export function valueRows(table: CodedTable, column: string): ValueRows[] {
  const cells = table.cells.get(column) ?? [];
  const counts = new Array<number>(cells.length).fill(0);
  for (const code of table.codes.get(column) ?? []) counts[code] = (counts[code] ?? 0) + 1;
  return cells.map((value, code) => ({ value, rows: counts[code] ?? 0 }));
}

/** The share of the rows that no other row equals in all of these columns; from 0 to 1. */
export function uniqueShare(table: CodedTable, columns: readonly string[]): number {
  if (columns.length === 0 || table.rows === 0) return 0;
  let combined = new Int32Array(table.rows);
  for (const name of columns) {
    const own = table.codes.get(name);
    if (own === undefined) continue;
    const pairs = new Map<number, number>();
    // Both codes are less than the number of rows, which is at most 2^26, so the product is exact.
    combined = combined.map((before, row) => {
      const pair = before * table.rows + (own[row] ?? 0);
      let value = pairs.get(pair);
      if (value === undefined) {
        value = pairs.size;
        pairs.set(pair, value);
      }
      return value;
    });
  }
  const counts = new Map<number, number>();
  for (const value of combined) counts.set(value, (counts.get(value) ?? 0) + 1);
  let unique = 0;
  for (const count of counts.values()) if (count === 1) unique += 1;
  return unique / table.rows;
}

/** What a cell says as a number; `null` for one that is none. */
function numberOf(cell: string, { decimal, thousands }: TextFormat): number | null {
  const plain = (thousands ? cell.replaceAll(thousands, '') : cell).replace(decimal, '.');
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : null;
}

/** The table with the numbers of a column rounded to multiples, of two the one further from 0, as they are released. */
export function rounded(
  table: CodedTable,
  { name, round, missing }: { name: string; round: number; missing?: readonly string[] | null | undefined },
  format: TextFormat,
): CodedTable {
  const [codes, cells] = [table.codes.get(name), table.cells.get(name)];
  if (codes === undefined || cells === undefined) return table;
  const dictionary = new Map<string, number>();
  const codeOf = cells.map((cell) => {
    const value = missing?.includes(cell) ? null : numberOf(cell, format);
    // The quotient of two decimals, such as 0.15 and 0.1, is a little beside the exact one.
    const times = value === null ? 0 : Math.sign(value) * Math.round(Number((Math.abs(value) / round).toPrecision(12)));
    const shown = value === null ? cell : String(Number((times * round).toPrecision(12)));
    const known = dictionary.get(shown) ?? dictionary.size;
    dictionary.set(shown, known);
    return known;
  });
  return {
    ...table,
    codes: new Map(table.codes).set(name, codes.map((code) => codeOf[code] ?? 0)),
    cells: new Map(table.cells).set(name, [...dictionary.keys()]),
  };
}
