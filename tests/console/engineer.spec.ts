// The data engineer: from a dropped file to a release that the analyst downloads.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drop, expect, ROOT, saved, test, TRANSFUSIONS } from './console';

test('a dropped file becomes a release that the analyst fetches', async ({ page, world, enter, browser }) => {
  await enter(page, await world.token('holder'));
  await world.token('recipient');
  await page.getByRole('link', { name: 'New dataset' }).click();
  await drop(page, '.drop', TRANSFUSIONS);
  const role = (column: string) => page.getByRole('combobox', { name: `Role of ${column}` });
  await expect(role('sex')).toHaveValue('quasi_identifier');
  await expect(role('diagnosis')).toHaveValue('sensitive');
  await expect(page.getByRole('combobox', { name: 'Kind of age' })).toHaveValue('numeric');
  await expect(page.getByText(/^0(\.2)?% of the rows are unique by diagnosis and units together, which stay unchanged\./)).toBeVisible();

  // What stays unchanged is counted at once.
  await role('case').selectOption('insensitive');
  await expect(page.getByText(/^100% of the rows are unique by case, diagnosis, and units together.*Leave out or round/)).toBeVisible();
  await role('case').selectOption('identifier');
  await role('units').selectOption('insensitive');
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('2,000 rows are stored.')).toBeVisible();

  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('link', { name: 'New job' }).click();
  await page.getByRole('combobox', { name: 'Dataset' }).selectOption('transfusions');
  await page.getByRole('combobox', { name: 'Privacy model' }).selectOption('lkc');
  await page.getByRole('spinbutton', { name: 'K' }).fill('8');
  await page.getByRole('spinbutton', { name: 'L' }).fill('2');
  await page.getByRole('textbox', { name: 'C', exact: true }).fill('0.6');
  await page.getByRole('combobox', { name: 'Recoding' }).selectOption('global');
  await expect(page.getByText(/knows up to 2 values .* at least 8 matching .* above 60%/)).toBeVisible();
  await page.getByRole('button', { name: 'Start' }).click();

  const slider = page.getByRole('slider', { name: 'Step' });
  await expect(slider).toBeVisible({ timeout: 60_000 });
  await expect(page.getByRole('progressbar')).toHaveAttribute('value', '1');
  const job = page.url().split('/').at(-1) ?? '';
  const { items } = await world.call<{ items: { step: number; groups: number }[] }>(await world.token('holder'), 'GET', `/v1/jobs/${job}/steps`);
  for (const step of [0, 1, items.length - 1]) {
    await slider.fill(String(step));
    await expect(page.getByText(`${String(items[step]?.groups)} groups`, { exact: true })).toBeVisible();
  }
  await expect(page.getByRole('img', { name: /^Released labels of occupation: / })).toBeVisible();
  await slider.fill('2');
  await page.getByRole('textbox', { name: 'Name of the release' }).fill('second step');
  await page.getByRole('button', { name: 'Release this step' }).click();

  await expect(page.getByRole('heading', { name: 'second step', level: 1 })).toBeVisible();
  await expect(page.getByText('holds', { exact: true })).toBeVisible();
  const table = await saved(page, 'CSV');
  const sum = createHash('sha256').update(table).digest('hex');
  await expect(page.getByText(sum)).toBeVisible();
  expect(table.toString()).toMatch(/^sex,age,occupation,postcode,diagnosis,units\r?\n/);
  await page.getByRole('textbox', { name: 'Recipient' }).or(page.getByRole('combobox', { name: 'Recipient' })).fill(world.bts);
  await page.getByRole('textbox', { name: 'Purpose' }).fill('Modelling the demand for blood');
  await page.getByRole('button', { name: 'Grant' }).click();
  await expect(page.getByRole('cell', { name: 'Modelling the demand for blood' })).toBeVisible();

  const other = await browser.newContext({ baseURL: world.url });
  const analyst = await other.newPage();
  await enter(analyst, await world.token('recipient'));
  await expect(analyst.getByRole('navigation').getByRole('link')).toHaveText(['Releases', 'Publications']);
  await analyst.getByRole('link', { name: 'second step' }).click();
  await expect(analyst.getByText('Modelling the demand for blood')).toBeVisible();
  expect((await saved(analyst, 'CSV')).equals(table)).toBe(true);
  expect((await saved(analyst, 'Parquet')).subarray(0, 4).toString()).toBe('PAR1');
  expect((await saved(analyst, 'Package')).subarray(0, 2).toString()).toBe('PK');
  await expect(analyst.getByRole('heading', { name: 'Codebook' })).toBeVisible();
  await expect(analyst.getByRole('button', { name: 'Withdraw' })).toHaveCount(0);
  await analyst.getByRole('link', { name: 'Report' }).click();
  await expect(analyst.getByRole('heading', { name: 'Utility' })).toBeVisible();
  await other.close();
});

test('the preset of Safe Harbor takes the levels of the table', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  const example = (name: string): string => readFileSync(join(ROOT, 'examples/guidelines', name)).toString();
  const { id } = await world.call<{ id: string }>(holder, 'POST', '/v1/datasets', JSON.parse(example('dataset.json')));
  await world.call(holder, 'POST', `/v1/datasets/${id}/submissions`, example('admissions.csv'));
  let assessed = 0;
  page.on('request', (request) => { assessed += Number(request.url().endsWith('/risk')); });
  await enter(page, holder, `#/jobs/new?dataset=${id}`);
  await page.getByRole('combobox', { name: 'For whom' }).selectOption('HIPAA Safe Harbor');
  await page.getByText('More choices').click();
  await expect(page.getByRole('spinbutton', { name: 'Level of zip' })).toHaveValue('1');
  await expect(page.getByRole('spinbutton', { name: 'Level of admitted' })).toHaveValue('1');
  // What it sets is its own no more once it is changed.
  await page.getByRole('spinbutton', { name: 'Level of zip' }).fill('');
  await expect(page.getByRole('combobox', { name: 'For whom' })).toHaveValue('');
  // A second answer would set the levels again.
  expect(assessed).toBe(1);
  await page.getByRole('combobox', { name: 'For whom' }).selectOption('EMA and Health Canada: risk of 0.09');
  await page.getByRole('combobox', { name: 'Privacy model' }).selectOption('confidence_bounding');
  await expect(page.getByRole('combobox', { name: 'For whom' })).toHaveValue('');
  await page.getByRole('combobox', { name: 'For whom' }).selectOption('HIPAA Safe Harbor');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('button', { name: 'Release this table' })).toBeVisible({ timeout: 60_000 });
  const job = page.url().split('/').at(-1) ?? '';
  const document = await world.call<{ definition: { pre_generalization: unknown } }>(holder, 'GET', `/v1/jobs/${job}`);
  expect(document.definition.pre_generalization).toEqual({ zip: { level: 1 }, admitted: { level: 1 } });
});

test('a file of another country is read as it is written', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/datasets/new');
  await page.getByLabel('File').setInputFiles(join(ROOT, 'examples/guide/stays.csv'));
  await expect(page.getByRole('combobox', { name: 'Delimiter' })).toHaveValue(';');
  await expect(page.getByRole('combobox', { name: 'Encoding' })).toHaveValue('windows-1252');
  await expect(page.getByRole('combobox', { name: 'Role of Patient' })).toHaveValue('subject');
  await page.getByRole('combobox', { name: 'Role of Kosten' }).selectOption('identifier');
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('526 rows are stored.')).toBeVisible();
  await expect(page.getByText('persons', { exact: true })).toBeVisible();
});

test('rows that do not fit are refused where they are wrong, and nothing is stored', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  await enter(page, await world.token('holder'), `#/datasets/${dataset}`);
  const rows = readFileSync(TRANSFUSIONS, 'utf8').split('\n').slice(0, 4);
  rows[2] = rows[2]?.replace(',M,70,', ',M,old,') ?? '';
  await page.getByLabel('File').setInputFiles({ name: 'rows.csv', mimeType: 'text/csv', buffer: Buffer.from(rows.join('\n')) });
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByRole('alert')).toContainText('line 3, age');
  await expect(page.getByRole('alert')).not.toContainText('old');
});

test('rows are not stored twice without a word', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  await enter(page, await world.token('holder'), `#/datasets/${dataset}`);
  await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByRole('alert')).toContainText('duplicate_submission');
  await page.getByLabel('They are other patients').check();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('2,000 rows are stored.')).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('a reason for one dataset does not go along to another, and a risk that is not computed is said', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  const table = `id,sex\n${Array.from({ length: 200 }, (_, row) => `${String(row)},${'MF'[row % 2] ?? ''}`).join('\n')}\n`;
  for (const name of ['one', 'two']) {
    const columns = [{ name: 'id', role: 'insensitive' }, { name: 'sex', role: 'quasi_identifier' }];
    const { id } = await world.call<{ id: string }>(holder, 'POST', '/v1/datasets', { name, columns });
    await world.call(holder, 'POST', `/v1/datasets/${id}/submissions`, table);
  }
  await enter(page, holder, '#/jobs/new');
  await page.getByRole('combobox', { name: 'Dataset' }).selectOption('one');
  await page.getByRole('combobox', { name: 'Privacy model' }).selectOption('k_anonymity');
  await page.getByRole('button', { name: 'Start' }).click();
  const reason = page.getByRole('textbox', { name: /may be released unchanged/ });
  await reason.fill('meant for one');
  // It is sent as long as it is shown.
  await page.getByRole('link', { name: 'Datasets' }).click();
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('link', { name: 'New job' }).click();
  await expect(reason).toHaveValue('meant for one');
  await page.route('**/risk', (route) =>
    route.fulfill({ status: 422, json: { code: 'limit_exceeded', title: 'A limit', detail: 'too many', status: 422 } }));
  await page.getByRole('combobox', { name: 'Dataset' }).selectOption('two');
  await expect(page.getByRole('alert')).toContainText('too many');
  await expect(reason).toHaveCount(0);
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(reason).toHaveValue('');
});

test('no figures of other rows are shown, and rows are deleted by who is sure', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  await enter(page, await world.token('holder'), `#/datasets/${dataset}`);
  await expect(page.getByText('greatest K that it can meet')).toBeVisible();
  await page.route('**/risk', (route) =>
    route.fulfill({ status: 422, json: { code: 'limit_exceeded', title: 'A limit', detail: 'too many', status: 422 } }));
  await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await page.getByLabel('They are other patients').check();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('2,000 rows are stored.')).toBeVisible();
  await expect(page.getByRole('alert')).toContainText('too many');
  await expect(page.getByText('greatest K that it can meet')).toHaveCount(0);
  await page.unroute('**/risk');

  const submission = page.getByRole('region', { name: 'Latest submissions' }).getByRole('row').nth(1);
  const remove = submission.getByRole('button', { name: 'Delete these rows' });
  await expect(remove).toBeDisabled();
  await submission.getByRole('checkbox', { name: 'I am sure' }).check();
  await remove.click();
  await expect(page.getByRole('button', { name: 'Delete these rows' })).toHaveCount(1);
  await expect(page.getByText('greatest K that it can meet')).toBeVisible();
});

test('the figures of a draft are those of rounded numbers', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/datasets/new');
  const rows = Array.from({ length: 100 }, (_, row) => `${'MF'[row % 2] ?? ''},${String(1000 + row)}.5`);
  await page.getByLabel('File').setInputFiles({ name: 'costs.csv', mimeType: 'text/csv', buffer: Buffer.from(`sex,cost\n${rows.join('\n')}\n`) });
  await page.getByRole('combobox', { name: 'Role of cost' }).selectOption('insensitive');
  await page.getByRole('combobox', { name: 'Role of sex' }).selectOption('quasi_identifier');
  const round = page.getByRole('textbox', { name: /[Rr]ound.*cost/ });
  await round.fill('');
  await round.blur();
  await expect(page.getByText(/^100% of the rows are unique by cost,/)).toBeVisible();
  await round.fill('100');
  await round.blur();
  await expect(page.getByText(/^0% of the rows are unique by cost,/)).toBeVisible();
});

test('a hierarchy of ARX is taken, and used by a new dataset', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/hierarchies');
  const rows = ['Clerk', 'Driver', 'Engineer', 'Farmer', 'Miner', 'Nurse', 'Physician', 'Teacher'].map(
    (job) => `${job};${job < 'F' ? 'first' : 'second'};*`,
  );
  await page.getByLabel('File').setInputFiles({ name: 'jobs.csv', mimeType: 'text/csv', buffer: Buffer.from(rows.join('\n')) });
  await expect(page.getByRole('textbox', { name: 'Name' })).toHaveValue('jobs');
  await page.getByRole('button', { name: 'Save hierarchy' }).click();
  await expect(page.getByText('8 values in 3 levels')).toBeVisible();
  await page.goto('/console/#/datasets/new');
  await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
  await page.getByRole('combobox', { name: 'Hierarchy of occupation' }).selectOption('jobs');
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('2,000 rows are stored.')).toBeVisible();
});

test('several runs are compared, and one of them is released', async ({ page, world, enter }) => {
  await world.dataset();
  await enter(page, await world.token('holder'), '#/jobs/new');
  await page.getByRole('combobox', { name: 'Dataset' }).selectOption('transfusions');
  await page.getByText('More choices').click();
  await page.getByRole('textbox', { name: 'Values of K' }).fill('5 20');
  await page.getByRole('textbox', { name: 'Values of L' }).fill('1 2');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('heading', { name: 'Compare' })).toBeVisible({ timeout: 60_000 });
  const points = page.getByRole('group', { name: /risk/ }).getByRole('button');
  await expect(points).toHaveCount(4);
  await page.getByRole('checkbox', { name: 'Show L 1, K 5' }).check();
  await page.getByRole('checkbox', { name: 'Show L 2, K 20' }).check();
  await expect(page.getByRole('slider', { name: 'Step' })).toHaveCount(2);
  await page.getByRole('checkbox', { name: 'Show L 1, K 5' }).uncheck();
  await expect(page.getByRole('slider', { name: 'Step' })).toHaveCount(1);
  await page.getByRole('button', { name: 'Release this step' }).click();
  await expect(page.getByText(/up to 2 values .* at least 20 matching/)).toBeVisible();
});
