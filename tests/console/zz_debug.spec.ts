import { test } from './console';
test('debug', async ({ page, world, enter }) => {
  const release = await world.release(await world.dataset('transfusions'), 'x');
  await enter(page, await world.token('holder'), `#/releases/${release}/report`);
  await page.getByText('Distributions').waitFor();
  console.log(await page.evaluate(() => [...document.querySelectorAll('table.bars')].slice(0,2).map((t) => [t.clientWidth, ...[...t.querySelectorAll('tr:first-child > *')].map((c) => [c.tagName, c.clientWidth, getComputedStyle(c).width, getComputedStyle(c).minWidth, getComputedStyle(t).tableLayout])])));
  const p = page.getByText(/rows/).allTextContents();
  console.log(JSON.stringify(await p));
});
