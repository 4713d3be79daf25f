// A release's documents, and the parts of them that the schema leaves open.

import { api, read, type Schemas } from '../../api/client';
import { time } from '../../model/format';
import { parameters } from '../../model/meaning';
import { MODELS, type Model } from '../../model/privacy';
import { i18n } from '../../texts/index.svelte';

export type Release = Schemas['ReleaseDocument'];

export interface Verification {
  readonly smallest_group?: number;
  readonly smallest_known_group?: number;
  readonly greatest_confidence?: number | null;
}

export function verificationOf(release: Release): Verification {
  return (release.verification ?? {}) as Verification;
}

/** Its name; without one its model, parameters and time. */
export function titleOf({ name, privacy, created_at }: Pick<Release, 'name' | 'privacy' | 'created_at'>): string {
  const { model } = privacy as { model?: Model };
  return name ?? [model && i18n.t.newJob.models[model], parameters(privacy), time(created_at)].filter(Boolean).join(', ');
}

/** Its report; the service notes that the caller has it. */
export async function reportOf(id: string): Promise<Schemas['ReportDocument']> {
  const params = { path: { id } };
  const call = api.GET('/v1/releases/{id}/report', { params, headers: { Accept: 'application/json' } });
  return (await read(call)) as Schemas['ReportDocument'];
}

/** Whether a confidence in a sensitive value says anything. */
export function hasSensitive(codebook: Release['codebook']): boolean {
  return codebook == null || codebook.columns.some((column) => column.role === 'sensitive');
}

/** Whether the model bounds listed values only, so that others may be inferred. */
export function listsValues(privacy: unknown): boolean {
  return (privacy as { sensitive_values?: object | null } | null | undefined)?.sensitive_values != null;
}

/** The greatest confidence that the model allows; `undefined` where it bounds none, or in other terms. */
export function greatestAllowed(privacy: unknown): number | undefined {
  const { model, c, alpha } = (privacy ?? {}) as { model?: Model; c?: number; alpha?: number };
  return model !== undefined && MODELS[model].bounds ? (c ?? alpha) : undefined;
}

/** The path of a table in a format. */
export function tablePath(release: Release, table: string, format: string, safe: boolean): string {
  const place = release.tables.length > 1 || table !== 'data' ? `tables/${encodeURIComponent(table)}` : 'data';
  const query = new URLSearchParams({ format, ...(safe && format === 'csv' ? { safe_csv: 'true' } : {}) });
  return `/v1/releases/${release.id}/${place}?${query.toString()}`;
}

/** The name of a file, where the service gives none. */
export function fileName(release: Release, table: string, ending: string): string {
  const name = (release.name ?? release.id).replace(/[^\p{L}\p{N}._-]+/gu, '-');
  return `${table === 'data' ? name : `${name}-${table}`}.${ending}`;
}

/** Code that loads the table, in the languages of analysts. */
export function snippets(release: Release, origin: string): Record<'R' | 'Python' | 'SQL', string> {
  const url = `${origin}/v1/releases/${release.id}/data?format=parquet`;
  return {
    R: [
      'library(httr2); library(arrow)',
      `request("${url}") |>`,
      '  req_auth_bearer_token(Sys.getenv("PAIS_TOKEN")) |>',
      '  req_perform(path = "release.parquet")',
      'release <- read_parquet("release.parquet")',
    ].join('\n'),
    Python: [
      'import io, os, pandas, requests',
      `answer = requests.get("${url}",`,
      '    headers={"Authorization": "Bearer " + os.environ["PAIS_TOKEN"]})',
      'answer.raise_for_status()',
      'release = pandas.read_parquet(io.BytesIO(answer.content))',
    ].join('\n'),
    SQL: [
      '-- DuckDB, with the downloaded Parquet file',
      "SELECT * FROM read_parquet('release.parquet') LIMIT 10;",
    ].join('\n'),
  };
}
