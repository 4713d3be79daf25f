// The dataset that is being declared. It stays while other pages are open, until it is made.

import type { Schemas } from '../../api/client';
import type { TextFormat } from '../../api/files';
import type { CodedTable } from '../../model/table';

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
