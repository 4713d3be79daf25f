// Which candidates of a sweep are worth a look: those that no other one beats in risk and in loss.

export interface Candidate {
  readonly risk: number;
  readonly loss: number;
  /** Greater is a stronger promise; absent for all attributes. */
  readonly l?: number | undefined;
  /** Smaller is a stronger promise; absent without a bound. */
  readonly c?: number | undefined;
}

/** Those that no other one which promises as much beats; by growing loss. Risks of different L are not comparable. */
export function frontier<C extends Candidate>(candidates: readonly C[]): C[] {
  const unbeaten = candidates.filter((one) => !candidates.some((other) => covers(other, one) && beats(other, one)));
  return unbeaten.sort((a, b) => a.loss - b.loss || a.risk - b.risk);
}

function covers(one: Candidate, other: Candidate): boolean {
  const l = (it: Candidate): number => it.l ?? Number.POSITIVE_INFINITY;
  return l(one) >= l(other) && (one.c ?? 1) <= (other.c ?? 1);
}

function beats(one: Candidate, other: Candidate): boolean {
  const isNoWorse = one.risk <= other.risk && one.loss <= other.loss;
  return isNoWorse && (one.risk < other.risk || one.loss < other.loss);
}
