// How columns are generalized, and hierarchies as text: a row for each leaf, `leaf;level 1;…;top`, the form of ARX and Amnesia.

import type { Schemas } from '../api/client';
import type { TaxonomyNode } from './cut';

/** Whether a column of this kind that has no hierarchy is generalized to intervals. */
export function growsIntervals(kind: Schemas['ColumnKind'] | undefined): boolean {
  return kind === 'numeric' || kind === 'date' || kind === 'datetime';
}

/** The rows of a tree. A label stays for the levels that its branch does not have. */
export function toRows(root: TaxonomyNode): string {
  const levels = levelsOf(root).length;
  const rows: string[] = [];
  const visit = (node: TaxonomyNode, above: readonly string[]): void => {
    const children = node.children ?? [];
    if (children.length > 0) {
      for (const child of children) visit(child, [node.label, ...above]);
      return;
    }
    const missing = levels - 1 - above.length;
    const row = [...Array<string>(missing + 1).fill(node.label), ...above];
    rows.push(row.map(quoted).join(';'));
  };
  visit(root, []);
  return rows.join('\n') + '\n';
}

function quoted(cell: string): string {
  return /[;"\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

export interface Level {
  readonly level: number;
  readonly labels: readonly string[];
}

/** The labels of each level, from the widest down: the values have level 0, a label one more than the highest below it. */
export function levelsOf(root: TaxonomyNode): Level[] {
  const levels: string[][] = [];
  const visit = (node: TaxonomyNode): number => {
    let level = 0;
    for (const child of node.children ?? []) level = Math.max(level, visit(child) + 1);
    (levels[level] ??= []).push(node.label);
    return level;
  };
  visit(root);
  return levels.map((labels, level) => ({ level, labels })).reverse();
}
