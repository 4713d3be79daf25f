// What each line of a policy says of a release, as far as its document shows.

import type { Schemas } from '../../api/client';
import { percent } from '../../model/format';
import { i18n } from '../../texts/index.svelte';
import type { Release } from '../releases/release';

type Policy = Schemas['Policy'];

export interface Line {
  readonly name: keyof Policy;
  readonly demand: string;
  readonly actual?: string | undefined;
  /** `absent`: no column has the name. `inapplicable`: it is not asked of this model. */
  readonly state: 'met' | 'unmet' | 'absent' | 'inapplicable' | 'decision' | 'undecided';
}

interface Privacy {
  readonly model: Schemas['ModelWord'];
  readonly k?: number | null;
  readonly l?: number | null;
  readonly c?: number | null;
  readonly alpha?: number | null;
  readonly t?: number | null;
  readonly column_limits?: Readonly<Record<string, number>> | null;
  readonly sensitive_values?: object | null;
}

/** As the service decides them. */
export function lines(policy: Policy, release: Release): Line[] {
  const privacy = release.privacy as unknown as Privacy;
  const { models, k_min, l_min, c_max, suppression_max, quasi_identifiers, sensitive_values, recipients } = policy;
  const found: Line[] = [];
  const add = (name: Line['name'], demand: string, is: boolean | Line['state'], actual?: string): void => {
    found.push({ name, demand, actual, state: is === true ? 'met' : is === false ? 'unmet' : is });
  };
  const isNamed = models?.includes(privacy.model) ?? false;
  if (models) add('models', models.join(', '), isNamed, privacy.model);
  if (k_min != null) add('k_min', String(k_min), (privacy.k ?? 1) >= k_min, String(privacy.k ?? '–'));
  if (l_min != null) {
    const l = privacy.l == null ? null : Math.min(privacy.l, ...Object.values(privacy.column_limits ?? {}));
    add('l_min', String(l_min), l === null ? 'inapplicable' : l >= l_min, String(l ?? '–'));
  }
  if (c_max != null) {
    const most = confidence(privacy);
    if (sensitive_values == null && privacy.sensitive_values != null) {
      add('c_max', percent(c_max), false, i18n.t.approval.listedOnly);
    } else if (most === 'none') {
      add('c_max', percent(c_max), isNamed ? 'inapplicable' : c_max >= 1, i18n.t.approval.boundsNothing);
    } else {
      add('c_max', percent(c_max), most === 'own' ? 'inapplicable' : most <= c_max, most === 'own' ? undefined : percent(most));
    }
  }
  const all = release.rows + release.suppressed_rows;
  const share = all === 0 ? 0 : release.suppressed_rows / all;
  if (suppression_max != null) add('suppression_max', percent(suppression_max), share <= suppression_max, percent(share));
  for (const name of quasi_identifiers ?? []) {
    const roles = release.codebook?.columns.filter((column) => [column.name, ...(column.from ?? [])].some((own) => isSame(own, name))).map(({ role }) => role);
    const isProtected = roles?.every((role) => ['quasi_identifier', 'identifier', 'subject'].includes(role));
    const actual = roles?.map((role) => i18n.t.columns.roles[role]).join(', ');
    add('quasi_identifiers', name, roles?.length === 0 ? 'absent' : (isProtected ?? 'undecided'), actual);
  }
  if (sensitive_values) add('sensitive_values', Object.keys(sensitive_values).join(', '), 'undecided');
  if (recipients) add('recipients', recipients.join(', '), 'undecided');
  if (policy.require_approval) {
    const status = release.approval?.status ?? 'pending';
    add('require_approval', '', status === 'pending' ? 'decision' : status === 'approved', i18n.t.approvals.statuses[status]);
  }
  return found;
}

/** The greatest confidence that a model allows: `none` where it bounds none, `own` where it does in its own terms. */
function confidence(privacy: Privacy): number | 'none' | 'own' {
  const own = (is: boolean): 'none' | 'own' => (is ? 'own' : 'none');
  switch (privacy.model) {
    case 'lkc':
    case 'confidence_bounding':
      return privacy.c ?? 'none';
    case 'alpha_k':
      return privacy.alpha ?? 'none';
    case 't_closeness':
      return own((privacy.t ?? 1) < 1);
    case 'l_diversity':
    case 'distinct_l_diversity':
    case 'entropy_l_diversity':
    case 'recursive_cl_diversity':
      return own((privacy.l ?? 1) > 1 && !Object.values(privacy.column_limits ?? {}).includes(0));
    case 'k_anonymity':
    case 'k_m_anonymity':
      return 'none';
  }
}

/** Whether two names look the same. */
function isSame(one: string, other: string): boolean {
  const visible = (name: string): string => name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '').normalize('NFKC').trim();
  return visible(one) === visible(other);
}
