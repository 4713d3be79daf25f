import { join } from 'node:path';
import { expect, ROOT, test, TRANSFUSIONS } from './console';
const OUT = process.env['SHOTS'] ?? '/tmp/h3shots';
test('pictures', async ({ page, world, enter }) => {
  test.setTimeout(300_000);
  const dataset = await world.dataset('transfusions');
  const job = await world.job(dataset);
  const sweep = await world.job(dataset, { privacy: { model: 'lkc', l: 2, k: [5, 20], c: 0.6 } });
  const holder = await world.token('holder');
  const release = await world.release(dataset, 'A release of blood');
  const h = await world.call<{ id: string }>(holder, 'POST', '/v1/taxonomies', { name: 'letters', root: { label: '*', children: [{ label: 'a', children: [{ label: 'b' }, { label: 'c' }] }, { label: 'd' }] } });
  await enter(page, holder);
  const shots: [string, string][] = [
    ['datasets', '#/datasets'], ['dataset', `#/datasets/${dataset}`], ['new', '#/datasets/new'], ['hierarchies', '#/hierarchies'], ['hierarchy', `#/hierarchies/${h.id}`],
    ['newjob', `#/jobs/new?dataset=${dataset}`], ['job', `#/jobs/${job.id}`], ['sweep', `#/jobs/${sweep.id}`], ['release', `#/releases/${release}`], ['report', `#/releases/${release}/report`],
    ['approval', `#/approvals/${release}`], ['policy', '#/policy'], ['newpub', '#/publications/new'],
    ['compare', `#/compare?of=${encodeURIComponent(`jobs/${job.id}/report?step=1`)}&of=${encodeURIComponent(`jobs/${job.id}/report?step=4`)}`],
  ];
  const only = process.env['ONLY']?.split(',');
  for (const [name, address] of shots) {
    if (only && !only.includes(name)) continue;
    await page.goto(`/console/${address}`);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await page.waitForLoadState('networkidle');
    if (name === 'new') {
      await page.getByLabel('File').setInputFiles(TRANSFUSIONS);
      await expect(page.getByRole('combobox', { name: 'Role of sex' })).toBeVisible();
      await page.getByRole('combobox', { name: 'Hierarchy of postcode' }).selectOption('prefix').catch(() => undefined);
      await page.getByRole('button', { name: 'Preview of the hierarchy of postcode' }).click().catch(() => undefined);
      await page.waitForTimeout(1500);
    }
    if (name === 'hierarchies') {
      await page.getByLabel('Table', { exact: true }).setInputFiles(join(ROOT, 'examples/guide/stays.csv'));
      await page.getByRole('combobox', { name: 'Column' }).selectOption('Geburtsdatum');
      await page.waitForTimeout(1500);
    }
    if (name === 'newjob') await page.locator('main details').evaluateAll((all) => all.forEach((it) => it.setAttribute('open', '')));
    await page.waitForTimeout(800);
    for (const [width, scheme] of [[1280, 'light'], [390, 'dark']] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(300);
      await page.screenshot({ path: join(OUT, `${name}-${width}.png`), fullPage: true });
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }
});
