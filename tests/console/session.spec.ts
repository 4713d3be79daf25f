// Sessions that end, a service that is away, and links that last.

import { expect, test, TRANSFUSIONS } from './console';
import { call, Service } from './service';

test('a token that is revoked in the middle loses nothing', async ({ page, world, enter }) => {
  const { token, id } = await world.tokenAndId('holder', 'first');
  await enter(page, token, '#/datasets/new');
  await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
  await page.getByRole('combobox', { name: 'Role of units' }).selectOption('insensitive');
  await page.getByRole('textbox', { name: 'Name' }).fill('kept');
  await world.call(world.admin, 'DELETE', `/v1/tokens/${id}`);
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await expect(page.getByText('Your token is no longer accepted.')).toBeVisible();
  await expect(page.getByRole('combobox', { name: 'Role of units' })).toHaveCount(0);
  await page.getByRole('textbox', { name: 'Token' }).fill(await world.token('holder', 'second'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('textbox', { name: 'Name' })).toHaveValue('kept');
  await expect(page.getByRole('combobox', { name: 'Role of units' })).toHaveValue('insensitive');
  await page.getByRole('button', { name: 'Create dataset' }).click();
  await expect(page.getByRole('button', { name: 'Upload rows' })).toBeVisible();
});

test('somebody else who signs in then begins anew', async ({ page, world, enter }) => {
  const { token, id } = await world.tokenAndId('holder', 'first');
  await enter(page, token, '#/policy');
  await page.getByRole('textbox', { name: 'Least K' }).fill('7');
  await world.call(world.admin, 'DELETE', `/v1/tokens/${id}`);
  await page.getByRole('button', { name: 'Save policy' }).click();
  await page.getByRole('textbox', { name: 'Token' }).fill(await world.token('recipient'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { name: 'Releases', level: 1 })).toBeVisible();
  await page.goto('/console/#/policy');
  await expect(page.getByRole('heading', { name: 'Releases', level: 1 })).toBeVisible();
});

test('without input the session ends, after a warning', async ({ page, world, enter }) => {
  await page.clock.install();
  await enter(page, await world.token('holder'));
  await page.clock.runFor('14:10');
  await page.getByRole('button', { name: 'Stay signed in' }).click();
  await page.clock.runFor('14:10');
  await expect(page.getByRole('alertdialog')).toBeVisible();
  await page.clock.runFor('01:00');
  await expect(page.getByText('signed out after 15 minutes')).toBeVisible();
  await expect(page.getByRole('navigation')).toHaveCount(0);
});

test('a token is in memory alone', async ({ page, world, enter }) => {
  const token = await world.token('holder');
  await enter(page, token);
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  expect(stored).not.toContain(token);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('textbox', { name: 'Token' })).toHaveValue('');
  await page.reload();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
});

test('a link opens its page after the sign-in, and the back button leads back', async ({ page, world, enter }) => {
  const dataset = await world.dataset('linked');
  await enter(page, await world.token('holder'), `#/datasets/${dataset}`);
  await expect(page.getByRole('heading', { name: 'linked' })).toBeVisible();
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('link', { name: 'New job' }).click();
  await page.getByRole('spinbutton', { name: 'K' }).fill('33');
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'Jobs', level: 1 })).toBeVisible();
  await page.goForward();
  await expect(page.getByRole('spinbutton', { name: 'K' })).toHaveValue('33');
  await page.goBack();
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'linked' })).toBeVisible();
});

test('the service goes away and comes back, and an enrolment code gives a token', async ({ page }) => {
  const service = await Service.start({ PAIS__SECURITY__ENROLMENT: 'true' });
  try {
    const admin = await service.token('operators', 'admin');
    await call(service.url, admin, 'POST', '/v1/organizations', { name: 'hospital' });
    await page.goto(`${service.url}/console/`);
    await page.getByRole('textbox', { name: 'Token' }).fill(admin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('combobox', { name: 'Organization' }).selectOption('hospital');
    await page.getByRole('button', { name: 'Issue token' }).click();
    const code = await page.getByText(/^paisenrol_/).textContent();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('I have an enrolment code').click();
    await page.getByRole('textbox', { name: 'Enrolment code' }).fill(code ?? '');
    await page.getByRole('button', { name: 'Redeem the code' }).click();
    await expect(page.getByText(/^pais_[0-9a-f]{64}$/)).toBeVisible();
    await page.getByRole('button', { name: 'Sign in' }).click();

    await page.getByRole('link', { name: 'Policy' }).click();
    await page.getByRole('textbox', { name: 'Least K' }).fill('9');
    await service.pause();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await expect(page.getByRole('alert')).toContainText('does not answer');
    await expect(page.getByRole('textbox', { name: 'Least K' })).toHaveValue('9');
    await service.run();
    await expect(page.getByText('Trying again…')).toHaveCount(0, { timeout: 30_000 });
    await page.getByRole('button', { name: 'Save policy' }).click();
    await expect(page.getByText('It is saved')).toBeVisible();
  } finally {
    await service.stop();
  }
});
