// Which candidates of a sweep are worth a look: those that no other one beats in risk and in loss.

export interface Candidate {
  readonly risk: number;
  readonly loss: number;
}

/** Those that no other one is at most as risky and as lossy as, and better in one; by growing loss. */
export function frontier<C extends Candidate>(candidates: readonly C[]): C[] {
  const byLoss = [...candidates].sort((a, b) => a.loss - b.loss || a.risk - b.risk);
  const best: C[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of byLoss) {
    if (candidate.risk < least) {
      best.push(candidate);
      least = candidate.risk;
    }
  }
  return best;
}
