// What holds on every page: accessible in light and dark, no wider than a telephone, fast, and small.

import AxeBuilder from '@axe-core/playwright';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from '@playwright/test';
import { expect, ROOT, test, TRANSFUSIONS, type Role, type World } from './console';

/** The addresses of all pages of a role, and what each shows when it is there. */
async function pages(world: World, role: Role): Promise<string[]> {
  if (role === 'admin') return ['#/organizations'];
  if (role === 'auditor') return ['#/log'];
  const dataset = await world.dataset();
  const job = await world.job(dataset, { release: true });
  const release = job.release_id ?? '';
  const recipient = await world.token('recipient');
  const holder = await world.token('holder');
  await world.call(holder, 'POST', `/v1/releases/${release}/grants`, { recipient: world.bts, purpose: 'Blood' });
  expect(recipient).not.toBe('');
  const own = [`#/releases`, `#/releases/${release}`, `#/releases/${release}/report`, '#/publications'];
  if (role === 'recipient') return own;
  // Local recoding has the same tables for both lengths.
  const sweep = await world.job(dataset, { privacy: { model: 'lkc', l: [2, 3], k: [5, 20], c: 0.6 }, recoding: 'local' });
  const tree = { label: '*', children: [{ label: 'a', children: [{ label: 'b' }, { label: 'c' }] }, { label: 'd' }] };
  const hierarchy = await world.call<{ id: string }>(holder, 'POST', '/v1/taxonomies', { name: 'letters', root: tree });
  const hospital = [
    '#/datasets', `#/datasets/${dataset}`, '#/hierarchies', `#/hierarchies/${hierarchy.id}`,
    '#/jobs', `#/jobs/${job.id}`, `#/jobs/${sweep.id}`, ...own, '#/approvals', `#/approvals/${release}`, '#/policy',
    `#/compare?of=jobs/${job.id}/report%3Fstep%3D1&of=releases/${release}/report`,
  ];
  if (role === 'officer') return [...hospital, '#/log'];
  return [...hospital, '#/datasets/new', '#/jobs/new', '#/publications/new'];
}

/** Goes to a page, and waits until everything on it is loaded. */
async function visit(page: Page, address: string): Promise<void> {
  await page.goto(`/console/${address}`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.waitForLoadState('networkidle');
  if (address === '#/datasets/new') {
    await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
    await page.getByRole('button', { name: 'Preview of the hierarchy of age' }).click();
    await expect(page.getByText('The whole hierarchy')).toBeVisible();
  }
  if (address.startsWith('#/compare')) await expect(page.getByRole('group', { name: 'sex' })).toBeVisible();
  await page.locator('main details').evaluateAll((all) => all.forEach((it) => it.setAttribute('open', '')));
}

async function check(page: Page, address: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const found = serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  expect.soft(found, address).toEqual([]);
}

for (const role of ['holder', 'officer', 'recipient', 'auditor', 'admin'] as const) {
  test(`every page of the role ${role} is accessible, and fits a telephone`, async ({ page, world, enter }) => {
    test.slow();
    const addresses = await pages(world, role);
    await enter(page, await world.token(role));
    for (const address of addresses) {
      await visit(page, address);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await check(page, `${address} ${colorScheme}`);
      }
      for (const width of [360, 3840]) {
        await page.setViewportSize({ width, height: 900 });
        const needed = await page.evaluate(() => document.documentElement.scrollWidth);
        expect.soft(needed, `${address} at ${String(width)}`).toBeLessThanOrEqual(width);
      }
      await page.setViewportSize({ width: 1280, height: 900 });
    }
  });
}

test('long names of columns and long links fit a telephone, and no label lies on another', async ({ page, world, enter }) => {
  const holder = await world.token('holder');
  const names = [0, 1, 2, 3].map((number) => `a_very_long_name_of_a_laboratory_column_${String(number)}_measured_at_admission`);
  const columns = names.map((name, at) => ({ name, role: at === 3 ? 'sensitive' : 'quasi_identifier' }));
  const { id } = await world.call<{ id: string }>(holder, 'POST', '/v1/datasets', { name: 'wide', columns });
  const rows = Array.from({ length: 200 }, (_, row) => [1, 2, 4, 8].map((width) => 'ab'[Math.floor(row / width) % 2]).join(','));
  await world.call(holder, 'POST', `/v1/datasets/${id}/submissions`, [names.join(','), ...rows, ''].join('\n'));
  const job = await world.job(id, { privacy: { model: 'lkc', l: 2, k: 5, c: 0.9 }, release: true });
  const release = job.release_id ?? '';
  await enter(page, holder);
  for (const address of [`#/datasets/${id}`, `#/jobs/new?dataset=${id}`, `#/jobs/${job.id}`, `#/releases/${release}`, `#/releases/${release}/report`]) {
    await visit(page, address);
    if (address.endsWith('/report')) await page.getByRole('button', { name: 'Make a link for colleagues' }).click();
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const found = await page.evaluate(() => ({
        needed: document.documentElement.scrollWidth,
        over: Array.from(document.querySelectorAll('main label, main caption')).filter((it) => it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0).length,
      }));
      expect.soft(found, `${address} at ${String(width)}`).toEqual({ needed: width, over: 0 });
    }
  }
});

test('the sign-in is accessible', async ({ page }) => {
  await page.goto('/console/');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await check(page, colorScheme);
  }
});

test('the first paint comes within a second, and the files are small', async ({ page, request }) => {
  // The best of some visits: another test may have the processor during one of them.
  await expect(async () => {
    await page.goto('/console/');
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    expect(paint).toBeLessThan(1000);
  }).toPass({ timeout: 20_000 });
  const assets = join(ROOT, 'console/dist/assets');
  const sizes = readdirSync(assets).map((name) => gzipSync(readFileSync(join(assets, name))).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300_000);
  const answer = await request.get('/console/');
  expect(answer.headers()['content-security-policy']).not.toContain('unsafe');
  expect(answer.headers()['content-security-policy']).toContain("default-src 'none'");
});

test('the console speaks German to a German browser, and what was chosen', async ({ browser, world }) => {
  const context = await browser.newContext({ locale: 'de-AT', baseURL: world.url });
  const page = await context.newPage();
  await page.goto('/console/');
  await expect(page.getByRole('button', { name: 'Anmelden' })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');
  await page.getByRole('combobox', { name: 'Sprache' }).selectOption('en');
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await page.reload();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await context.close();
});

test('a release is made with the keyboard alone', async ({ page, world }) => {
  const job = await world.job(await world.dataset());
  await page.goto(`/console/#/jobs/${job.id}`);
  await expect(page.getByRole('textbox', { name: 'Token' })).toBeFocused();
  await page.keyboard.type(await world.token('holder'));
  await page.keyboard.press('Enter');
  const slider = page.getByRole('slider', { name: 'Step' });
  await expect(slider).toBeVisible();
  for (let presses = 0; presses < 30 && !(await slider.evaluate((it) => it === document.activeElement)); presses += 1) {
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await expect(slider).toHaveValue('1');
  await page.keyboard.press('Tab');
  await page.keyboard.type('by keyboard');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'by keyboard' })).toBeVisible();
});
