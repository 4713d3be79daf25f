// The privacy officer, the auditor and the administrator.

import { expect, saved, test } from './console';

test('nobody fetches a release before a second person has approved it', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  const engineer = await world.token('holder', 'engineer');
  await world.token('recipient');
  await world.call(engineer, 'PUT', '/v1/policy', {
    require_approval: true, k_min: 5, recipients: [world.bts], quasi_identifiers: ['sex', 'Sex'],
  });
  const release = await world.release(dataset, 'to approve');
  const grant = async (): Promise<void> => {
    await page.getByRole('combobox', { name: 'Recipient' }).fill(world.bts);
    await page.getByRole('textbox', { name: 'Purpose' }).fill('Blood');
    await page.getByRole('button', { name: 'Grant' }).click();
  };
  await enter(page, engineer, `#/releases/${release}`);
  await grant();
  await expect(page.getByRole('alert')).toContainText('approval_required');
  await page.getByRole('button', { name: 'Sign out' }).click();

  await enter(page, await world.token('holder', 'second person'), `#/approvals/${release}`);
  await expect(page.getByRole('heading', { name: 'to approve' })).toBeVisible();
  await expect(page.getByText('holds', { exact: true })).toBeVisible();
  await expect(page.getByText(/of the rows are unique by the columns that stay unchanged/)).toBeVisible();
  await expect(page.getByText(`Together with what ${world.bts} has`)).toBeVisible();
  await expect(page.getByText('the model holds')).toBeVisible();
  await expect(page.getByText(/of the rows are unique by all columns that are not sensitive/)).toBeVisible();
  await expect(page.getByText('K at least')).toBeVisible();
  await expect(page.getByRole('listitem').filter({ hasText: 'always a quasi-identifier' })).toHaveText([
    /^met .* sex · here quasi-identifier$/, /^no such column .* Sex$/,
  ]);
  await expect(page.getByText('a second person approves each release')).toBeVisible();
  await page.getByRole('button', { name: 'Reject' }).click();
  await expect(page.getByRole('textbox', { name: 'Reason' })).toHaveAttribute('aria-invalid', 'true');
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('It is approved')).toBeVisible();
  await page.getByRole('link', { name: 'the release itself' }).click();
  await grant();
  await expect(page.getByRole('cell', { name: 'Blood', exact: true })).toBeVisible();
});

test('who approves an edition sees its publication, who gets it, and what they have', async ({ page, world, enter }) => {
  const dataset = await world.dataset();
  const holder = await world.token('holder');
  await world.token('recipient');
  await world.call(holder, 'PUT', '/v1/policy', { require_approval: true });
  const publication = await world.call<{ id: string }>(holder, 'POST', '/v1/publications', {
    name: 'monthly',
    dataset_id: dataset,
    job: { privacy: { model: 'k_anonymity', k: 5 } },
    recipients: [{ recipient: world.bts, purpose: 'Supply of blood' }],
    trigger: 'manual',
  });
  const path = `/v1/publications/${publication.id}/editions`;
  await world.call(holder, 'POST', path);
  let release: string | null | undefined;
  await expect(async () => {
    const { items } = await world.call<{ items: { release_id: string | null }[] }>(holder, 'GET', path);
    release = items[0]?.release_id;
    expect(release).toBeTruthy();
  }).toPass();
  // Its page follows what becomes of it.
  await enter(page, holder, `#/publications/${publication.id}`);
  await expect(page.getByText('waiting for approval')).toBeVisible();
  const officer = await world.token('officer');
  await world.call(officer, 'POST', `/v1/releases/${String(release)}/approval`);
  await expect(page.getByRole('cell', { name: 'published' })).toBeVisible();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await enter(page, officer, `#/approvals/${String(release)}`);
  await expect(page.getByRole('heading', { name: 'Edition 1 of the publication monthly' })).toBeVisible();
  await expect(page.getByText('It was published to:')).toBeVisible();
  await expect(page.getByText(`${world.bts}: Supply of blood`)).toBeVisible();
  await expect(page.getByText(`Together with what ${world.bts} has`)).toBeVisible();

  // The recipient sees from whom it is, and no column that only its holder has.
  await page.getByRole('button', { name: 'Sign out' }).click();
  await enter(page, await world.token('recipient'), '#/releases');
  await expect(page.getByRole('row', { name: /monthly-1/ })).toContainText(`${world.hospital}transfusions`);
  await page.getByRole('link', { name: 'Publications' }).click();
  await expect(page.getByRole('row', { name: /monthly/ })).toContainText(world.hospital);
  await page.getByRole('link', { name: 'monthly' }).click();
  await expect(page.getByText('Rows can be held back')).toBeVisible();
  await expect(page.getByRole('columnheader', { name: 'Held back' })).toHaveCount(0);
});

test('a release without a sensitive column has no confidence, and shows why a key is in it', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  const columns = [{ name: 'sex', role: 'quasi_identifier' }, { name: 'number', role: 'insensitive' }];
  const dataset = await world.call<{ id: string }>(holder, 'POST', '/v1/datasets', { name: 'keyed', columns });
  const rows = Array.from({ length: 40 }, (_, row) => `${row % 2 === 0 ? 'f' : 'm'},N${String(row)}\n`);
  await world.call(holder, 'POST', `/v1/datasets/${dataset.id}/submissions`, `sex,number\n${rows.join('')}`);
  const release = await world.release(dataset.id, 'keyed', {
    privacy: { model: 'k_anonymity', k: 5 },
    acknowledge_unchanged: { number: 'Needed for the follow-up' },
  });
  await enter(page, await world.token('officer'));
  for (const address of [`#/approvals/${release}`, `#/releases/${release}/report`, `#/releases/${release}`]) {
    await page.goto(`/console/${address}`);
    await expect(page.getByText('– highest confidence there is no sensitive column')).toBeVisible();
    await expect(page.getByText(/^100% of the rows are unique by all columns that are not sensitive/)).toBeVisible();
    if (address !== `#/releases/${release}`) await expect(page.getByText('number Needed for the follow-up')).toBeVisible();
  }
  const { job_id } = await world.call<{ job_id: string }>(holder, 'GET', `/v1/releases/${release}`);
  await page.goto(`/console/#/jobs/${job_id}`);
  await expect(page.getByRole('slider', { name: 'Step' })).toBeVisible();
  await expect(page.getByText(/confidence/)).toHaveCount(0);
  await page.getByRole('link', { name: 'Compare both' }).click();
  const confidence = page.getByRole('table').first().getByRole('row', { name: /^highest confidence/ });
  await expect(confidence.getByRole('cell')).toHaveText(['–', '–']);
});

test('the policy is read, changed and saved', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  await enter(page, holder, '#/policy');
  await page.getByRole('textbox', { name: 'Least K' }).fill('many');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByRole('textbox', { name: 'Least K' })).toHaveAttribute('aria-invalid', 'true');
  await page.getByRole('textbox', { name: 'Least K' }).fill('12');
  await page.getByRole('textbox', { name: 'Greatest C' }).fill('0,4');
  await page.getByRole('checkbox', { name: 'LKC-privacy' }).check();
  await page.getByRole('textbox', { name: 'Recipients' }).fill('bts\nlab');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('It is saved')).toBeVisible();
  expect(await world.call(holder, 'GET', '/v1/policy')).toMatchObject({ k_min: 12, c_max: 0.4, models: ['lkc'], recipients: ['bts', 'lab'] });
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('link', { name: 'Policy' }).click();
  await expect(page.getByRole('textbox', { name: 'Recipients' })).toHaveValue('bts\nlab');
});

test('the policy is saved only as it is read, and only over the policy that was shown', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  await world.call(holder, 'PUT', '/v1/policy', { sensitive_values: { diagnosis: ['a: b'] } });
  await enter(page, holder, '#/policy');
  const values = page.getByRole('textbox', { name: 'Values to bound' });
  await values.fill('diagnosis: a: b\nSurgery Transgender');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(values).toHaveAccessibleDescription(/Nothing was saved.*line 2/);
  await values.fill('diagnosis: a: b\nSurgery: Transgender');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('It is saved')).toBeVisible();
  const saved = { sensitive_values: { diagnosis: ['a: b'], Surgery: ['Transgender'] } };
  expect(await world.call(holder, 'GET', '/v1/policy')).toEqual(saved);
  await page.getByRole('textbox', { name: 'Least K' }).fill('7');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('It is saved')).toBeVisible();

  await world.call(holder, 'PUT', '/v1/policy', { k_min: 20 });
  await page.getByRole('textbox', { name: 'Greatest C' }).fill('0.5');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('The policy was changed meanwhile')).toBeVisible();
  expect(await world.call(holder, 'GET', '/v1/policy')).toEqual({ k_min: 20 });
  await page.getByRole('button', { name: 'Show it as it is now' }).click();
  await expect(page.getByRole('textbox', { name: 'Least K' })).toHaveValue('20');
  await page.getByRole('textbox', { name: 'Greatest C' }).fill('0.5');
  await page.getByRole('button', { name: 'Save policy' }).click();
  await expect(page.getByText('It is saved')).toBeVisible();
  expect(await world.call(holder, 'GET', '/v1/policy')).toEqual({ k_min: 20, c_max: 0.5 });
});

test('the auditor reads, filters and exports the log, and sees that its chain is whole', async ({ page, world, enter }) => {
  await world.dataset('audited');
  await enter(page, await world.token('auditor'));
  await expect(page.getByText(/The chain of these \d+ events is unbroken/)).toBeVisible();
  await expect(page.getByText('submission.created')).toBeVisible();
  await page.getByRole('combobox', { name: 'Action' }).fill('dataset.created');
  await page.getByRole('button', { name: 'Filter' }).click();
  await expect(page.getByText('submission.created')).toHaveCount(0);
  await expect(page.getByRole('row', { name: /dataset\.created.*audited/ })).toHaveCount(1);
  const waiting = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  expect((await waiting).suggestedFilename()).toMatch(/\.ndjson$/);

  // Rows of another filter have gaps, and are no broken chain while those of this one are awaited, or missing.
  let isAway = true;
  await page.getByRole('combobox', { name: 'Action' }).fill('token.created');
  await page.getByRole('button', { name: 'Filter' }).click();
  await expect(page.getByRole('row', { name: /token\.created/ })).not.toHaveCount(0);
  await page.route('**/v1/audit?*', async (route) => {
    if (!isAway) return route.continue();
    await expect(page.getByText('The chain')).toHaveCount(0);
    await route.fulfill({ status: 500, json: { code: 'internal', title: 'The service failed', detail: 'away', status: 500 } });
  });
  await page.getByRole('combobox', { name: 'Action' }).fill('');
  await page.getByRole('button', { name: 'Filter' }).click();
  await expect(page.getByRole('alert')).toContainText('away');
  await expect(page.getByText('The chain')).toHaveCount(0);
  await expect(page.getByRole('row')).toHaveCount(0);
  isAway = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByText(/The chain of these \d+ events is unbroken/)).toBeVisible();
});

test('the administrator makes organizations and tokens, and takes them back', async ({ page, world, enter }) => {
  await enter(page, world.admin);
  await expect(page.getByRole('navigation').getByRole('link')).toHaveText(['Organizations']);
  const name = `${world.hospital}-new`;
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Not A Slug');
  await page.getByRole('button', { name: 'Create organization' }).click();
  await expect(page.getByRole('textbox', { name: 'Name', exact: true })).toHaveAttribute('aria-invalid', 'true');
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await page.getByRole('button', { name: 'Create organization' }).click();
  await expect(page.getByRole('cell', { name, exact: true })).toBeVisible();

  await page.getByRole('combobox', { name: 'Organization' }).selectOption(name);
  await page.getByRole('combobox', { name: 'Role' }).selectOption('auditor');
  await page.getByRole('textbox', { name: 'Label' }).fill('for the audit');
  await page.getByRole('button', { name: 'Issue token' }).click();
  const token = (await page.getByText(/^pais_[0-9a-f]{64}$/).textContent()) ?? '';
  const caller = await world.call<{ role: string }>(token, 'GET', '/v1/whoami');
  expect(caller.role).toBe('auditor');
  await page.getByRole('button', { name: 'Hide it' }).click();
  await expect(page.getByText(token)).toHaveCount(0);
  const issued = page.getByRole('row', { name: /for the audit/ });
  await expect(issued.getByRole('button', { name: 'Revoke' })).toBeDisabled();
  await issued.getByRole('checkbox', { name: 'I am sure' }).check();
  await issued.getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByRole('row', { name: /for the audit/ })).toContainText('revoked');
  await expect(world.call(token, 'GET', '/v1/whoami')).rejects.toThrow('401');
});

test('a report is opened by others with a link', async ({ page, world, enter, browser }) => {
  const release = await world.release(await world.dataset(), 'reported');
  await enter(page, await world.token('holder'), `#/releases/${release}/report`);
  await page.getByRole('button', { name: 'Make a link for colleagues' }).click();
  const link = page.getByRole('link', { name: /\/reports\// });
  const other = await browser.newContext();
  const reader = await other.newPage();
  await reader.goto(new URL((await link.getAttribute('href')) ?? '', world.url).href);
  await expect(reader.getByRole('heading', { level: 1 })).toBeVisible();
  await other.close();
  await page.getByRole('link', { name: 'The table' }).click();
  expect((await saved(page, 'CSV')).length).toBeGreaterThan(1000);
});
