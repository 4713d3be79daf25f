// Hierarchies before a row is stored: what they make of the values of a file, and which values do not fit.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, ROOT, test, TRANSFUSIONS } from './console';

test('a generated hierarchy is previewed over the values of the file, as its parameters change', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/datasets/new');
  await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
  await page.getByRole('combobox', { name: 'Role of postcode' }).selectOption('quasi_identifier');
  await page.getByRole('combobox', { name: 'Kind of postcode' }).selectOption('categorical');
  await page.getByRole('combobox', { name: 'Hierarchy of postcode' }).selectOption('prefix');
  await page.getByRole('textbox', { name: 'lengths: postcode' }).fill('3, 2');
  await page.getByRole('textbox', { name: 'lengths: postcode' }).blur();
  await page.getByRole('button', { name: 'Preview of the hierarchy of postcode' }).click();
  const preview = page.getByRole('region', { name: 'Preview of the hierarchy of postcode' });
  await expect(preview.getByText('Every one of the 8 values fits.')).toBeVisible();
  await expect(preview.getByRole('row', { name: /^3 \*/ })).toBeVisible();
  await expect(preview.getByRole('row', { name: /^2 80\* 81\* 82\*/ })).toBeVisible();
  await expect(preview.getByRole('row', { name: /^1 801\* 802\* 810\* 820\*/ })).toBeVisible();

  await page.getByRole('textbox', { name: 'lengths: postcode' }).fill('1');
  await page.getByRole('textbox', { name: 'lengths: postcode' }).blur();
  await expect(preview.getByRole('row', { name: /^1 8\*/ })).toBeVisible();
  await expect(preview.getByRole('row', { name: /801\*/ })).toHaveCount(0);
  await page.getByRole('textbox', { name: 'lengths: postcode' }).fill('1, 3');
  await page.getByRole('textbox', { name: 'lengths: postcode' }).blur();
  await expect(preview.getByRole('alert')).toContainText('each less than the one before');
});

test('a file of ARX is checked against a table, both ways', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/hierarchies');
  const jobs = ['Clerk', 'Driver', 'Engineer', 'Farmer', 'Miner', 'Nurse', 'Teacher', 'Plumber'];
  const rows = jobs.map((job) => `${job};${job < 'F' ? 'first' : 'second'};*`).join('\n');
  await page.getByLabel('File').setInputFiles({ name: 'jobs.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) });
  await expect(page.getByRole('textbox', { name: 'A row for each value' })).toHaveValue(/^Clerk;first/);
  await page.getByRole('button', { name: 'Save hierarchy' }).click();
  await expect(page.getByText('8 values in 3 levels')).toBeVisible();
  await page.getByLabel('Table', { exact: true }).setInputFiles(TRANSFUSIONS);
  await page.getByRole('combobox', { name: 'Column' }).selectOption('occupation');
  const preview = page.getByRole('region', { name: 'Preview of the hierarchy of occupation' });
  await expect(preview.getByText('Values that do not fit: 1')).toBeVisible();
  await expect(preview.getByRole('listitem')).toContainText('Physician');
  await expect(preview.getByText('Labels that no value of the table has: 1')).toContainText('Plumber');
});

test('labels that were generated are edited as rows, and saved', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/hierarchies');
  // A file of another country: its numbers are read as it writes them.
  await page.getByLabel('Table', { exact: true }).setInputFiles(join(ROOT, 'examples/guide/stays.csv'));
  await page.getByRole('combobox', { name: 'Column' }).selectOption('Kosten');
  await page.getByRole('combobox', { name: 'Hierarchy of Kosten' }).selectOption('ranges');
  const preview = page.getByRole('region', { name: 'Preview of the hierarchy of Kosten' });
  await expect(preview.getByText(/^Every one of the \d+ values fits\.$/)).toBeVisible();
  await preview.getByRole('button', { name: 'Edit these labels as rows' }).click();
  await expect(page.getByRole('textbox', { name: 'A row for each value' })).toHaveValue(/^"?\[0,\d+\);/);
  await page.getByRole('textbox', { name: 'Name' }).fill('costs');
  await page.getByRole('button', { name: 'Save hierarchy' }).click();
  await expect(page.getByRole('heading', { name: 'costs' })).toBeVisible();
  const stored = await world.call<{ items: unknown[] }>(await world.token('holder'), 'GET', '/v1/datasets');
  expect(stored.items).toEqual([]);
});

test('a compressed table cannot be tried, and the page says so', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/hierarchies');
  const rows = readFileSync(TRANSFUSIONS, 'utf8').split('\n').slice(1, 40);
  const text = rows.map((row) => JSON.stringify({ case: row.split(',')[0], sex: row.split(',')[1] })).join('\n');
  await page.getByLabel('Table', { exact: true }).setInputFiles({ name: 'rows.ndjson', mimeType: 'application/x-ndjson', buffer: Buffer.from(text) });
  await expect(page.getByText('Only CSV and TSV of up to 64 MB that are not compressed can be tried.')).toBeVisible();
});
