// The privacy officer's whole way: she sets the policy, decides, grants and withdraws, and makes nothing.

import { expect, saved, test } from './console';

test('the officer sets the policy, rejects, approves, grants, withdraws, and finds it in the log', async ({ page, world, enter }) => {
  test.slow();
  const dataset = await world.dataset();
  const engineer = await world.token('holder', 'engineer');
  const first = await world.release(dataset, 'too fine');
  const second = await world.release(dataset, 'fine enough');
  const recipient = await world.token('recipient');
  const officer = await world.token('officer', 'Dr. Baumann');

  await enter(page, officer);
  await expect(page.getByRole('navigation').getByRole('link')).toHaveText([
    'Datasets', 'Jobs', 'Releases', 'Publications', 'Approvals', 'Policy', 'Log',
  ]);
  await page.getByRole('link', { name: 'Policy' }).click();
  await page.getByRole('textbox', { name: 'Least K' }).fill('5');
  await page.getByRole('textbox', { name: 'Recipients' }).fill(world.bts);
  await page.getByRole('checkbox', { name: 'A second person approves each release' }).check();
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('It is saved')).toBeVisible();
  expect(await world.call(engineer, 'GET', '/v1/policy')).toMatchObject({ k_min: 5, require_approval: true });

  // What waits, newest first.
  await page.getByRole('link', { name: 'Approvals' }).click();
  await expect(page.getByRole('row').getByRole('link')).toHaveText(['fine enough', 'too fine']);
  await page.getByRole('link', { name: 'too fine' }).click();
  await expect(page.getByText('holds', { exact: true })).toBeVisible();
  await expect(page.getByText(`Together with what ${world.bts} has`)).toBeVisible();
  await page.getByRole('button', { name: 'Reject' }).click();
  await expect(page.getByRole('textbox', { name: 'Reason' })).toHaveAttribute('aria-invalid', 'true');
  await page.getByRole('textbox', { name: 'Reason' }).fill('Ages are too exact');
  await page.getByRole('button', { name: 'Reject' }).click();
  await expect(page.getByText('It is rejected')).toBeVisible();
  await expect(page.getByText('Dr. Baumann Ages are too exact')).toBeVisible();
  // A decision is final.
  await expect(page.getByRole('button', { name: 'Approve' })).toHaveCount(0);

  await page.getByRole('navigation').getByRole('link', { name: 'Approvals' }).click();
  await expect(page.getByRole('row').getByRole('link')).toHaveText(['fine enough']);
  await page.getByRole('link', { name: 'rejected' }).click();
  await expect(page.getByRole('row', { name: /too fine.*Dr\. Baumann.*Ages are too exact/ })).toBeVisible();
  await page.getByRole('link', { name: 'waiting' }).click();
  await page.getByRole('link', { name: 'fine enough' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('The board has seen the report');
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('It is approved')).toBeVisible();

  // She grants it, reads the table herself, and the recipient fetches it.
  await page.getByRole('link', { name: 'the release itself' }).click();
  await page.getByRole('combobox', { name: 'Recipient' }).fill(world.bts);
  await page.getByRole('textbox', { name: 'Purpose' }).fill('Blood');
  await page.getByRole('button', { name: 'Grant' }).click();
  await expect(page.getByRole('cell', { name: 'Blood', exact: true })).toBeVisible();
  expect((await saved(page, 'CSV')).length).toBeGreaterThan(1000);
  const seen = await world.call<{ approval: object }>(recipient, 'GET', `/v1/releases/${second}`);
  expect(Object.keys(seen.approval).sort()).toEqual(['at', 'status']);
  await expect(world.call(recipient, 'GET', `/v1/releases/${first}`)).rejects.toThrow('404');

  await page.getByRole('textbox', { name: 'Reason' }).fill('Rows of another hospital');
  await page.getByRole('button', { name: 'Withdraw' }).click();
  await expect(page.getByText('Rows of another hospital')).toBeVisible();
  await page.getByRole('link', { name: 'Log' }).click();
  for (const action of ['policy.changed', 'release.rejected', 'release.approved', 'grant.created', 'release.withdrawn']) {
    await expect(page.getByRole('row', { name: new RegExp(`${action.replace('.', '\\.')}.*Dr\\. Baumann`) }).first()).toBeVisible();
  }
});

test('beside an officer a holder neither sets the policy nor decides, and she makes nothing', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  const job = await world.job(dataset);
  const release = await world.release(dataset, 'waits');
  const officer = await world.tokenAndId('officer', 'Dr. Baumann');
  await world.call(officer.token, 'PUT', '/v1/policy', { require_approval: true });

  await enter(page, await world.token('holder', 'second person'), '#/policy');
  await expect(page.getByText('The privacy officer decides this.')).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'Least K' })).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Save policy' })).toHaveCount(0);
  await page.goto(`/console/#/approvals/${release}`);
  await expect(page.getByText('The privacy officer decides this.')).toBeVisible();
  for (const name of ['Approve', 'Reject']) await expect(page.getByRole('button', { name })).toHaveCount(0);
  // She can come while the page is open: then the service says so.
  await page.route('**/v1/organization/tokens*', (route) => route.fulfill({ json: { items: [] } }));
  await page.goto('/console/#/policy');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('The privacy officer decides this.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save policy' })).toHaveCount(0);
  await page.unroute('**/v1/organization/tokens*');
  await page.getByRole('button', { name: 'Sign out' }).click();

  await enter(page, officer.token, '#/datasets');
  await expect(page.getByRole('link', { name: 'transfusions' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'New dataset' })).toHaveCount(0);
  await page.getByRole('link', { name: 'transfusions' }).click();
  await expect(page.getByRole('heading', { name: 'transfusions' })).toBeVisible();
  await expect(page.getByRole('row', { name: /^sex/ }).first()).toBeVisible();
  for (const name of ['Upload rows', 'Delete']) await expect(page.getByRole('button', { name })).toHaveCount(0);
  await page.goto(`/console/#/jobs/${job.id}`);
  await expect(page.getByRole('slider', { name: 'Step' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Release this step' })).toHaveCount(0);

  // Her token ends, and the holders decide again.
  await world.call(world.admin, 'DELETE', `/v1/tokens/${officer.id}`);
  await page.getByRole('button', { name: 'Sign out' }).click().catch(() => null);
  await enter(page, await world.token('holder', 'second person'), `#/approvals/${release}`);
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('It is approved')).toBeVisible();
});
