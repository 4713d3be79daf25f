// Hierarchies as text: a row for each leaf, `leaf;level 1;…;top`, the form of ARX and Amnesia.

import type { TaxonomyNode } from './cut';

/** The rows of a tree. A label stays for the levels that its branch does not have. */
export function toRows(root: TaxonomyNode): string {
  const depth = (node: TaxonomyNode): number =>
    1 + Math.max(0, ...(node.children ?? []).map((child) => depth(child)));
  const levels = depth(root);
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
