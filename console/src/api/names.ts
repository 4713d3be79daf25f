// The names of datasets, where a list has only their ids.

import { all, api, read, type Schemas } from './client';

/** By id; without those that were deleted. For roles that read schemas. */
export async function datasetNames(): Promise<ReadonlyMap<string, string>> {
  const datasets = await all((query) => read(api.GET('/v1/datasets', { params: { query } })));
  return new Map(datasets.map(({ id, name }) => [id, name]));
}

/** By dataset, the codebook of one of these releases: a list of a recipient names neither dataset nor holder. */
export async function codebooksOf(releases: readonly Schemas['ReleaseDocument'][]): Promise<ReadonlyMap<string, Schemas['Codebook']>> {
  const one = new Map(releases.filter(({ withdrawn }) => withdrawn == null).map(({ dataset_id, id }) => [dataset_id, id]));
  const found = await Promise.all([...one].map(async ([dataset, id]) => {
    const release = await read(api.GET('/v1/releases/{id}', { params: { path: { id } } })).catch(() => null);
    return release?.codebook ? [[dataset, release.codebook] as const] : [];
  }));
  return new Map(found.flat());
}
