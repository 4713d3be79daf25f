// Two candidates side by side, and whether figures count rows or persons.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, ROOT, test, type World } from './console';

/** The stays of the guide, whose column `Patient` names persons; a job of them. */
async function stays(world: World): Promise<{ dataset: string; job: string }> {
  const holder = await world.token('holder');
  const send = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(world.url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${holder}`, 'Content-Type': 'text/csv' },
      body: readFileSync(join(ROOT, 'examples/guide/stays.csv')),
    });
    expect(answer.ok, path).toBe(true);
    return (await answer.json()) as Record<string, unknown>;
  };
  const { dataset: definition } = (await send('/v1/datasets/draft?name=stays')) as { dataset: { columns: { name: string; role: string }[] } };
  for (const column of definition.columns) if (column.name === 'Kosten') column.role = 'identifier';
  const dataset = await world.call<{ id: string }>(holder, 'POST', '/v1/datasets', definition);
  await send(`/v1/datasets/${dataset.id}/submissions`);
  const job = await world.job(dataset.id, { privacy: { model: 'lkc', l: 2, k: 5, c: 0.8 } });
  return { dataset: dataset.id, job: job.id };
}

test('two steps are compared, values and figures, and nothing is released', async ({ page, world, enter }) => {
  const job = await world.job(await world.dataset());
  await enter(page, await world.token('holder'), `#/jobs/${job.id}`);
  await page.getByRole('slider', { name: 'Step' }).fill('1');
  await page.getByRole('spinbutton', { name: 'Compare with no.' }).fill('3');
  await page.getByRole('link', { name: 'Compare both' }).click();
  await expect(page.getByRole('heading', { name: 'Two tables side by side' })).toBeVisible();
  const table = page.getByRole('table').first();
  await expect(table.getByRole('columnheader', { name: 'Step 1' })).toBeVisible();
  await expect(table.getByRole('columnheader', { name: 'Step 3' })).toBeVisible();
  const loss = table.getByRole('row', { name: /^detail lost \(NCP\)/ }).getByRole('cell');
  const shares = (await loss.allTextContents()).map((text) => Number.parseFloat(text));
  expect(shares[1]).toBeLessThan(shares[0] ?? 0);
  await expect(loss.nth(1)).toHaveClass(/better/);
  await expect(loss.nth(0)).not.toHaveClass(/better/);
  const occupation = page.getByRole('group', { name: 'occupation' });
  for (const of of ['raw', 'Step 1', 'Step 3']) {
    await expect(occupation.getByRole('table', { name: of })).toBeVisible();
  }
  await expect(occupation.getByRole('table', { name: 'raw' }).getByRole('rowheader', { name: 'Physician' })).toBeVisible();

  // The address is that of the comparison, for as long as the job is there.
  await page.reload();
  await page.getByRole('textbox', { name: 'Token' }).fill(await world.token('officer'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('group', { name: 'occupation' })).toBeVisible();
  await page.goBack();
  const { items } = await world.call<{ items: unknown[] }>(await world.token('holder'), 'GET', '/v1/releases');
  expect(items).toEqual([]);
});

test('two combinations of a sweep are compared', async ({ page, world, enter }) => {
  const job = await world.job(await world.dataset(), { privacy: { model: 'lkc', l: 2, k: [5, 20], c: 0.6 } });
  await enter(page, await world.token('holder'), `#/jobs/${job.id}`);
  await page.getByRole('checkbox', { name: 'Show K 5' }).check();
  await page.getByRole('checkbox', { name: 'Show K 20' }).check();
  await page.getByRole('link', { name: 'Compare their values' }).click();
  await expect(page.getByRole('columnheader', { name: 'K 5, Last step' })).toBeVisible();
  await expect(page.getByRole('columnheader', { name: 'K 20, Last step' })).toBeVisible();
  await expect(page.getByRole('group', { name: 'postcode' }).getByRole('table')).toHaveCount(3);
});

test('two releases of a dataset are compared from the report of one, by their holder', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  await world.release(dataset, 'narrow');
  const wide = await world.release(dataset, 'wide', { privacy: { model: 'lkc', l: 2, k: 50, c: 0.6 } });
  await enter(page, await world.token('holder'), `#/releases/${wide}/report`);
  await expect(page.getByRole('heading', { name: 'Distributions' })).toBeVisible();
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('narrow');
  await expect(page.getByRole('columnheader', { name: 'narrow' })).toBeVisible();
  await expect(page.getByRole('columnheader', { name: 'wide' })).toBeVisible();
  await expect(page.getByRole('group', { name: 'age' })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'Report on wide' })).toBeVisible();
});

test('an address that names no two tables says so', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/compare?of=tokens&of=tokens');
  await expect(page.getByText('This address names no two tables.')).toBeVisible();
});

test('where persons have several rows, figures say that they count persons', async ({ page, world, enter }) => {
  const { dataset, job } = await stays(world);
  await enter(page, await world.token('holder'), `#/datasets/${dataset}`);
  await expect(page.getByText('of the persons are unique by their quasi-identifiers')).toBeVisible();
  await page.goto(`/console/#/jobs/${job}`);
  await expect(page.getByText(/finds at least 5 matching persons/)).toBeVisible();
  await expect(page.getByText(/^\d+ persons? smallest group$/).or(page.getByText(/^\d+ persons?$/)).first()).toBeVisible();
  await page.getByRole('button', { name: 'Release this step' }).click();
  await page.waitForURL(/#\/releases\//);
  await expect(page.getByText(/finds at least 5 matching persons/)).toBeVisible();
  const release = page.url().split('/').at(-1) ?? '';
  await page.goto(`/console/#/approvals/${release}`);
  await expect(page.getByText(/finds at least 5 matching persons/)).toBeVisible();
  await page.goto(`/console/#/releases/${release}/report`);
  await expect(page.getByRole('columnheader', { name: 'Smallest group, persons' })).toBeVisible();
  await expect(page.getByText('groups divided by persons')).toBeVisible();
});
