// The names of datasets, where a list has only their ids.

import { all, api, read } from './client';

/** By id; without those that were deleted. For roles that read schemas. */
export async function datasetNames(): Promise<ReadonlyMap<string, string>> {
  const datasets = await all((query) => read(api.GET('/v1/datasets', { params: { query } })));
  return new Map(datasets.map(({ id, name }) => [id, name]));
}
