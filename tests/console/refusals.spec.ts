// What is refused, and what a person can do then.

import { join } from 'node:path';
import { expect, ROOT, test } from './console';

test('a job below the policy is refused beside the field', async ({ page, world, enter }) => {
  await world.dataset();
  const holder = await world.token('holder');
  await world.call(holder, 'PUT', '/v1/policy', { k_min: 10, c_max: 0.7 });
  await enter(page, holder, '#/jobs/new');
  await page.getByRole('combobox', { name: 'Dataset' }).selectOption('transfusions');
  const k = page.getByRole('spinbutton', { name: 'K' });
  await k.fill('4');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('alert')).toContainText('below_policy');
  await expect(k).toHaveAttribute('aria-invalid', 'true');
  await expect(k).toHaveAccessibleDescription(/10/);
  // What was typed in is still there, and can be put right.
  await expect(k).toHaveValue('4');
  await k.fill('10');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('slider', { name: 'Step' })).toBeVisible({ timeout: 60_000 });
});

test('a grant that breaks the model together with others needs a reason', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  const holder = await world.token('holder');
  await world.token('recipient');
  const first = await world.release(dataset, 'first', { recoding: 'global' });
  const second = await world.release(dataset, 'second', { recoding: 'local' });
  await world.call(holder, 'POST', `/v1/releases/${first}/grants`, { recipient: world.bts, purpose: 'First' });
  await enter(page, holder, `#/releases/${second}`);
  const recipient = page.getByRole('combobox', { name: 'Recipient' });
  await recipient.fill(world.bts);
  await page.getByRole('button', { name: 'What do they have already?' }).click();
  await expect(page.getByText('the model is broken')).toBeVisible();
  await page.getByRole('textbox', { name: 'Purpose' }).fill('Second');
  await page.getByRole('button', { name: 'Grant' }).click();
  await expect(page.getByRole('alert')).toContainText('composition_risk');
  await page.getByRole('textbox', { name: 'Why it may be given nevertheless' }).fill('The first was never fetched');
  await page.getByRole('button', { name: 'Grant' }).click();
  await expect(page.getByRole('cell', { name: 'Second' })).toBeVisible();
});

test('a withdrawal needs a reason, and ends the downloads', async ({ page, world, enter }) => {
  const release = await world.release(await world.dataset(), 'wrong');
  await enter(page, await world.token('holder'), `#/releases/${release}`);
  const reason = page.getByRole('textbox', { name: 'Reason' });
  await page.getByRole('button', { name: 'Withdraw' }).click();
  await expect(reason).toHaveAttribute('aria-invalid', 'true');
  await expect(reason).toBeFocused();
  await reason.fill('Patients of another hospital');
  await page.getByRole('button', { name: 'Withdraw' }).click();
  await expect(page.getByText('Patients of another hospital')).toBeVisible();
  await expect(page.getByRole('link', { name: 'CSV' })).toHaveCount(0);
});

test('a job is cancelled', async ({ page, world, enter }) => {
  await enter(page, await world.token('holder'), '#/datasets/new');
  await page.getByLabel('File').setInputFiles(join(ROOT, 'tests/data/adult/adult.csv.gz'));
  await page.getByRole('combobox', { name: 'Role of marital-status' }).selectOption('sensitive');
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await page.getByRole('button', { name: 'Upload rows' }).click();
  await expect(page.getByText('45,222 rows are stored.')).toBeVisible({ timeout: 60_000 });
  await page.getByRole('link', { name: 'Anonymize' }).click();
  await page.getByText('More choices').click();
  await page.getByRole('combobox', { name: 'Search' }).selectOption('thorough');
  await page.getByRole('textbox', { name: 'C', exact: true }).fill('0.9');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await page.getByRole('button', { name: 'Cancel job' }).click();
  await expect(page.getByText('cancelled', { exact: true })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByRole('button', { name: 'Cancel job' })).toHaveCount(0);
});

test('a token that does not work is refused in words, and what is not of a role is not shown', async ({ page, world, enter }) => {
  await page.goto('/console/');
  await page.getByRole('textbox', { name: 'Token' }).fill('pais_0123');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('does not accept this token');
  await enter(page, await world.token('auditor'), '#/datasets');
  await expect(page.getByRole('heading', { name: 'Log', level: 1 })).toBeVisible();
  await expect(page.getByRole('navigation').getByRole('link')).toHaveText(['Log']);
});
