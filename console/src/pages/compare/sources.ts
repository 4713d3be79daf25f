// The tables of a comparison, as the paths of their reports below `/v1/`.

import type { Combination } from '../jobs/combination';

/** The table of a job after a step, the last where it is omitted; of a sweep, of one combination. */
export function tableOf(job: string, step: number | undefined, combination: Combination): string {
  const query = new URLSearchParams({
    ...(step === undefined ? {} : { step: String(step) }),
    ...Object.fromEntries(Object.entries(combination).map(([name, value]) => [name, String(value)])),
  });
  return `jobs/${job}/report${query.size > 0 ? '?' : ''}${query.toString()}`;
}

export function releaseOf(release: string): string {
  return `releases/${release}/report`;
}

/** The address of the comparison of two tables. */
export function comparison(one: string, other: string): string {
  return `#/compare?${new URLSearchParams([['of', one], ['of', other]]).toString()}`;
}

export interface Source {
  readonly path: string;
  readonly kind: 'jobs' | 'releases';
  readonly id: string;
  readonly query: URLSearchParams;
}

/** The two tables of an address; `null` where it names anything else. */
export function sourcesIn(query: URLSearchParams): readonly [Source, Source] | null {
  const found = query.getAll('of').flatMap((path): Source[] => {
    const parts = /^(jobs|releases)\/([0-9a-f-]{36})\/report(?:\?([\w=&.]*))?$/.exec(path);
    const [, kind, id, rest = ''] = parts ?? [];
    return kind === 'jobs' || kind === 'releases' ? [{ path, kind, id: id ?? '', query: new URLSearchParams(rest) }] : [];
  });
  const [one, other] = found;
  return one !== undefined && other !== undefined && found.length === 2 ? [one, other] : null;
}
