import { describe, expect, it } from 'vitest';
import { cutAfter, growTrees, layOut, stateAfter } from './cut';

// The run of the KDD'09 paper's example: jobs and ages.
const STEPS = [
  { step: 0, attribute: null, value: null, children: [] },
  { step: 1, attribute: 'Job', value: 'ANY', children: ['Blue-collar', 'White-collar'] },
  { step: 2, attribute: 'Age', value: '[1,99]', children: ['[1,37)', '[37,99]'] },
  { step: 3, attribute: 'Job', value: 'White-collar', children: ['Doctor', 'Lawyer'] },
];
const JOBS = {
  label: 'ANY',
  children: [
    { label: 'Blue-collar', children: [{ label: 'Janitor' }, { label: 'Mover' }, { label: 'Carpenter' }] },
    { label: 'White-collar', children: [{ label: 'Doctor' }, { label: 'Lawyer' }] },
  ],
};
const COLUMNS = [{ name: 'Job', taxonomy: JOBS }, { name: 'Age' }, { name: 'Sex' }];

describe('the cut', () => {
  const [job, age, sex] = growTrees(COLUMNS, STEPS);

  it('begins at the roots and moves with each step', () => {
    const jobs = [0, 1, 2, 3].map((step) => job && cutAfter(job, step));
    expect(jobs).toEqual([
      ['ANY'],
      ['Blue-collar', 'White-collar'],
      ['Blue-collar', 'White-collar'],
      ['Blue-collar', 'Doctor', 'Lawyer'],
    ]);
    expect(age && [1, 2].map((step) => cutAfter(age, step))).toEqual([['[1,99]'], ['[1,37)', '[37,99]']]);
  });

  it('has no labels of a column whose tree is not known', () => {
    expect(sex?.roots).toEqual([]);
  });

  it('covers every leaf once at every step', () => {
    for (const tree of growTrees(COLUMNS, STEPS)) {
      const { tiles } = layOut(tree);
      for (const step of [0, 1, 2, 3]) {
        const inCut = tiles.filter(({ node }) => stateAfter(node, step) === 'cut' && isReached(tree, node.label, step));
        expect(inCut.reduce((sum, tile) => sum + tile.width, 0)).toBeCloseTo(tree.roots.length === 0 ? 0 : 1);
      }
    }
  });

  it('knows how many values a label covers', () => {
    expect(job?.roots[0]?.leaves).toBe(5);
    expect(job?.roots[0]?.children.map((child) => child.leaves)).toEqual([3, 2]);
  });
});

function isReached(tree: Parameters<typeof cutAfter>[0], label: string, step: number): boolean {
  return cutAfter(tree, step).includes(label);
}

describe('the drawing', () => {
  it('puts children below their parent, side by side', () => {
    const [job] = growTrees(COLUMNS, STEPS);
    const { tiles, depth } = layOut(job ?? { column: '', roots: [] });
    expect(depth).toBe(3);
    for (const { node, depth: level, left, width } of tiles) {
      const below = tiles.filter((tile) => node.children.includes(tile.node));
      expect(below.every((tile) => tile.depth === level + 1)).toBe(true);
      if (below.length > 0) {
        expect(below.reduce((sum, tile) => sum + tile.width, 0)).toBeCloseTo(width);
        expect(below[0]?.left).toBeCloseTo(left);
      }
    }
  });
});
