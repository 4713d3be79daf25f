// Publications as the API documents them.

import { all, json } from '../../api/client';
import { asFailure } from '../../api/problem';

export interface Recipient {
  readonly recipient: string | { readonly id: string; readonly name: string };
  readonly purpose: string;
  readonly expires_at?: string | null;
}

export interface Publication {
  readonly id: string;
  readonly name: string;
  readonly dataset_id?: string;
  /** The name of its organization, for a recipient. */
  readonly holder?: string;
  readonly job?: { readonly privacy: { readonly model: string } } & Readonly<Record<string, unknown>>;
  readonly recipients?: readonly Recipient[];
  readonly trigger?: 'submission' | 'manual';
  readonly paused?: boolean;
  readonly created_at?: string;
  readonly warnings?: readonly { readonly code: string; readonly detail: string }[];
}

export type EditionStatus = 'queued' | 'running' | 'awaiting_approval' | 'published' | 'refused' | 'failed';

export interface Edition {
  readonly number: number;
  readonly status?: EditionStatus;
  readonly job_id?: string | null;
  readonly release_id?: string | null;
  readonly rows?: number | null;
  readonly held_back_rows?: number | null;
  readonly is_base?: boolean | null;
  readonly created_at?: string | null;
  readonly published_at?: string | null;
  readonly withdrawn_at?: string | null;
  readonly error?: { readonly title: string; readonly detail: string } | null;
}

/** All editions of a publication, oldest first. */
export function editionsOf(id: string): Promise<Edition[]> {
  return all<Edition>(({ limit, cursor }) => {
    const query = new URLSearchParams({ limit: String(limit), ...(cursor ? { cursor } : {}) });
    return json('GET', `/v1/publications/${id}/editions?${query.toString()}`);
  });
}

/** The edition that a release is, with its publication; `null` for one whose publication was deleted. */
export async function editionAt(place: { readonly publication_id: string; readonly number: number }): Promise<{ publication: Publication; edition: Edition | undefined } | null> {
  const id = place.publication_id;
  try {
    const [publication, editions] = await Promise.all([json<Publication>('GET', `/v1/publications/${id}`), editionsOf(id)]);
    return { publication, edition: editions.find(({ number }) => number === place.number) };
  } catch (thrown) {
    if (asFailure(thrown).problem.code === 'not_found') return null;
    throw thrown;
  }
}

export function nameOf({ recipient }: Recipient): string {
  return typeof recipient === 'string' ? recipient : recipient.name;
}
