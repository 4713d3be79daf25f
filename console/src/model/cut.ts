// The cut of a top-down run, as it moves with the steps. A step replaces a label of one column by its
// children (*child(v)*), so the steps alone grow each column's tree as far as the run went.

export interface Specialization {
  readonly step: number;
  readonly attribute?: string | null | undefined;
  readonly value?: string | null | undefined;
  readonly children: readonly string[];
}

export interface TaxonomyNode {
  readonly label: string;
  readonly children?: readonly TaxonomyNode[] | undefined;
}

export interface CutNode {
  readonly label: string;
  /** The step after which the label is in the cut; 0 for the root. */
  readonly since: number;
  /** The step that specializes it; infinite where the run never does. */
  until: number;
  children: CutNode[];
  /** Number of leaves below it in the column's taxonomy, where that is known. */
  readonly leaves?: number | undefined;
}

export interface CutTree {
  readonly column: string;
  readonly roots: CutNode[];
}

export type CutState = 'specialized' | 'cut' | 'ahead';

/** Where a label is after a step. */
export function stateAfter(node: CutNode, step: number): CutState {
  if (node.since > step) return 'ahead';
  return node.until > step ? 'cut' : 'specialized';
}

function leafCounts(root: TaxonomyNode | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (node: TaxonomyNode): number => {
    const below = (node.children ?? []).reduce((sum, child) => sum + count(child), 0);
    const leaves = Math.max(below, 1);
    counts.set(node.label, leaves);
    return leaves;
  };
  if (root) count(root);
  return counts;
}

/** Grows the tree of each column from the steps. */
export function growTrees(
  columns: readonly { readonly name: string; readonly taxonomy?: TaxonomyNode | undefined }[],
  steps: readonly Specialization[],
): CutTree[] {
  return columns.map(({ name, taxonomy }) => {
    const leaves = leafCounts(taxonomy);
    const node = (label: string, since: number): CutNode => ({
      label,
      since,
      until: Number.POSITIVE_INFINITY,
      children: [],
      leaves: leaves.get(label),
    });
    const roots: CutNode[] = taxonomy ? [node(taxonomy.label, 0)] : [];
    const known = new Map(roots.map((root) => [root.label, root]));
    for (const { attribute, value, children, step } of steps) {
      if (attribute !== name || value == null) continue;
      let parent = known.get(value);
      if (parent === undefined) {
        parent = node(value, 0);
        roots.push(parent);
        known.set(value, parent);
      }
      parent.until = step;
      parent.children = children.map((label) => node(label, step));
      for (const child of parent.children) known.set(child.label, child);
    }
    return { column: name, roots };
  });
}

/** The labels of the cut after a step, in the order of the tree. */
export function cutAfter(tree: CutTree, step: number): string[] {
  const labels: string[] = [];
  const visit = (node: CutNode): void => {
    const state = stateAfter(node, step);
    if (state === 'cut') labels.push(node.label);
    else if (state === 'specialized') node.children.forEach(visit);
  };
  tree.roots.forEach(visit);
  return labels;
}

export interface Tile {
  readonly node: CutNode;
  readonly depth: number;
  /** From 0 to 1. */
  readonly left: number;
  readonly width: number;
}

/** The tree as rows of tiles: a node is as wide as its children together, and all leaves are equal. */
export function layOut(tree: CutTree): { tiles: Tile[]; depth: number } {
  const width = (node: CutNode): number =>
    node.children.length === 0 ? 1 : node.children.reduce((sum, child) => sum + width(child), 0);
  const total = tree.roots.reduce((sum, root) => sum + width(root), 0);
  const tiles: Tile[] = [];
  let depth = 0;
  const place = (node: CutNode, left: number, level: number): void => {
    const own = width(node);
    tiles.push({ node, depth: level, left: left / total, width: own / total });
    depth = Math.max(depth, level + 1);
    let at = left;
    for (const child of node.children) {
      place(child, at, level + 1);
      at += width(child);
    }
  };
  let at = 0;
  for (const root of tree.roots) {
    place(root, at, 0);
    at += width(root);
  }
  return { tiles, depth };
}
