// Whether the policy and approvals are the privacy officer's alone: beside one, the service refuses holders.

import { session } from '../session.svelte';
import { all, api, read, type Schemas } from './client';
import type { Failure } from './problem';
import { Resource } from './resource.svelte';

function works({ role, revoked_at, enrolment_expires_at, expires_at }: Schemas['Token']): boolean {
  const isOver = revoked_at != null || (expires_at != null && new Date(expires_at) < new Date());
  return role === 'officer' && !isOver && enrolment_expires_at == null;
}

export class OfficerDecides {
  #tokens = new Resource(async () => {
    if (session.caller?.role !== 'holder') return [];
    return all((query) => read(api.GET('/v1/organization/tokens', { params: { query } })));
  });
  #refusal: () => Failure | null;

  /** `refusal`: what the service has answered to a decision, if it has refused one. */
  constructor(refusal: () => Failure | null) {
    this.#refusal = refusal;
  }

  get isOthers(): boolean {
    return (this.#tokens.data ?? []).some(works) || this.#refusal()?.problem.code === 'officer_required';
  }
}
