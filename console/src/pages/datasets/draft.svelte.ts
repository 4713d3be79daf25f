// The dataset that is being declared. It stays while other pages are open, until it is made.

import type { Schemas } from '../../api/client';
import { kindOf, type TextFormat } from '../../api/files';
import { code, type CodedTable } from '../../model/table';

export type Column = Schemas['ColumnDefinition'];
export type Definition = Omit<Schemas['DatasetDefinition'], 'columns'> & { columns: Column[]; format?: TextFormat };

/** A question about a column that the draft leaves open. */
export interface Doubt {
  readonly column: string;
  readonly question: string;
  readonly choices?: readonly unknown[];
}

export interface Draft {
  readonly dataset: Definition;
  readonly format: TextFormat;
  readonly reasons: Readonly<Record<string, readonly string[]>>;
  readonly doubts?: readonly Doubt[];
}

/** Gives a column another kind, without what fits its own only. */
export function setKind(column: Column, kind: Schemas['ColumnKind']): void {
  column.kind = kind;
  delete column.taxonomy;
  if (kind !== 'set') delete column.separator;
  if (kind !== 'date' && kind !== 'datetime') delete column.format;
  if (kind !== 'numeric') {
    delete column.domain;
    delete column.round;
  }
}

/** What is read of a text in the page. */
const TABLE_BYTES = 64 << 20;
const TABLE_ROWS = 500_000;

/** The table of a text file; `null` for one that cannot be read here, or is too large. */
export async function readTable(file: File, format: TextFormat): Promise<CodedTable | null> {
  const kind = kindOf(file.name);
  if (!kind.isText || kind.contentEncoding !== undefined || file.size > TABLE_BYTES) return null;
  const text = new TextDecoder(format.encoding).decode(await file.arrayBuffer());
  return code(text.replace(/^\uFEFF/, ''), format, TABLE_ROWS);
}

class NewDataset {
  file = $state.raw<File | null>(null);
  draft = $state.raw<Draft | null>(null);
  definition = $state<Definition | null>(null);
  format = $state<TextFormat | null>(null);
  table = $state.raw<CodedTable | null>(null);

  clear(): void {
    this.file = null;
    this.draft = null;
    this.definition = null;
    this.format = null;
    this.table = null;
  }
}

export const newDataset = new NewDataset();

/** The file from which a dataset was declared, for its first upload. */
class Pending {
  dataset = '';
  file: File | null = null;
  format: TextFormat | null = null;
}

export const pending = new Pending();
