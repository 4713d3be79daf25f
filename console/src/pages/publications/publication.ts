// Publications as the API documents them.

export interface Recipient {
  readonly recipient: string | { readonly id: string; readonly name: string };
  readonly purpose: string;
  readonly expires_at?: string | null;
}

export interface Publication {
  readonly id: string;
  readonly name: string;
  readonly dataset_id?: string;
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

export function nameOf({ recipient }: Recipient): string {
  return typeof recipient === 'string' ? recipient : recipient.name;
}
