// People at the console, and what they have in the service before they open it.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test as base, expect, type BrowserContext, type Page } from '@playwright/test';
import { call } from './service';

export { expect };

export const ROOT = resolve(__dirname, '../..');
export const TRANSFUSIONS = join(ROOT, 'examples/transfusions/transfusions.csv');

export type Role = 'holder' | 'recipient' | 'auditor' | 'admin' | 'officer';

let made = 0;

/** A hospital and a recipient that no other test has. */
export class World {
  readonly hospital: string;
  readonly bts: string;
  #tokens = new Map<string, { token: string; id: string }>();

  constructor(
    readonly url: string,
    readonly admin: string,
  ) {
    const own = `${process.pid.toString(36)}-${(made += 1)}-${Date.now().toString(36)}`;
    this.hospital = `hospital-${own}`;
    this.bts = `bts-${own}`;
  }

  /** The token of a person; `who` distinguishes people of one role. */
  async token(role: Role, who = ''): Promise<string> {
    return (await this.tokenAndId(role, who)).token;
  }

  async tokenAndId(role: Role, who = ''): Promise<{ token: string; id: string }> {
    if (role === 'admin') return { token: this.admin, id: '' };
    const known = this.#tokens.get(role + who);
    if (known) return known;
    const organization = role === 'recipient' ? this.bts : this.hospital;
    await this.call(this.admin, 'POST', '/v1/organizations', { name: organization }).catch(() => null);
    const label = who || role;
    const shown = await this.call<{ token: string; id: string }>(this.admin, 'POST', '/v1/tokens', { organization, role, label });
    this.#tokens.set(role + who, shown);
    return shown;
  }

  call<T = Record<string, unknown>>(token: string, method: string, path: string, body?: unknown): Promise<T> {
    return call<T>(this.url, token, method, path, body);
  }

  /** The transfusions of the examples, declared and uploaded. */
  async dataset(name = 'transfusions'): Promise<string> {
    const holder = await this.token('holder');
    const definition = JSON.parse(readFileSync(join(ROOT, 'examples/transfusions/dataset.json'), 'utf8')) as object;
    const dataset = await this.call<{ id: string }>(holder, 'POST', '/v1/datasets', { ...definition, name });
    await this.call(holder, 'POST', `/v1/datasets/${dataset.id}/submissions`, readFileSync(TRANSFUSIONS, 'utf8'));
    return dataset.id;
  }

  /** A job that has ended well. */
  async job(dataset: string, more: object = {}): Promise<{ id: string; release_id?: string }> {
    const holder = await this.token('holder');
    const privacy = { model: 'lkc', l: 2, k: 5, c: 0.6 };
    const asked = await this.call<{ id: string }>(holder, 'POST', '/v1/jobs', { dataset_id: dataset, privacy, ...more });
    for (;;) {
      const job = await this.call<{ id: string; status: string; release_id?: string }>(holder, 'GET', `/v1/jobs/${asked.id}`);
      if (job.status === 'succeeded') return job;
      if (!['queued', 'running'].includes(job.status)) throw new Error(JSON.stringify(job));
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  /** A release of the last step. */
  async release(dataset: string, name: string, more: object = {}): Promise<string> {
    const job = await this.job(dataset, more);
    const holder = await this.token('holder');
    const release = await this.call<{ id: string }>(holder, 'POST', '/v1/releases', { job_id: job.id, name });
    return release.id;
  }
}

/** Serves the built files of the working tree in place of those in the program, with its headers. */
async function serveWorkingTree(context: BrowserContext): Promise<void> {
  const dist = join(ROOT, 'console/dist');
  await context.route('**/console/**', async (route) => {
    const path = new URL(route.request().url()).pathname.replace(/^\/console\//, '') || 'index.html';
    const file = join(dist, path);
    if (!existsSync(file)) return route.continue();
    const policy = (await route.fetch({ url: new URL('/console/', route.request().url()).href })).headers();
    const types: Record<string, string> = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
    const contentType = types[path.split('.').at(-1) ?? ''] ?? 'text/plain';
    await route.fulfill({
      body: readFileSync(file),
      contentType,
      headers: { 'content-security-policy': policy['content-security-policy'] ?? '' },
    });
  });
}

interface Fixtures {
  world: World;
  /** Opens the console as a person, who signs in with the token. */
  enter: (page: Page, token: string, hash?: string) => Promise<void>;
}

export const test = base.extend<Fixtures>({
  world: async ({}, use) => {
    await use(new World(process.env['CONSOLE_URL'] ?? '', process.env['CONSOLE_ADMIN'] ?? ''));
  },
  baseURL: async ({}, use) => {
    await use(process.env['CONSOLE_URL']);
  },
  context: async ({ context }, use) => {
    if (process.env['CONSOLE_DIST']) await serveWorkingTree(context);
    const origins = new Set<string>();
    const refused: string[] = [];
    context.on('request', (request) => {
      if (/^https?:/.test(request.url())) origins.add(new URL(request.url()).hostname);
    });
    context.on('console', (message) => {
      if (/content security policy/i.test(message.text())) refused.push(message.text());
    });
    context.on('weberror', (error) => refused.push(error.error().message));
    await use(context);
    // Nothing leaves the machine, nothing is refused by the policy, and no script fails.
    expect([...origins]).toEqual(['127.0.0.1']);
    expect(refused).toEqual([]);
  },
  enter: async ({}, use) => {
    await use(async (page, token, hash = '') => {
      await page.goto(`/console/${hash}`);
      await page.getByRole('textbox', { name: 'Token' }).fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
    });
  },
});

/** Drops a file on an element, as from a file manager. */
export async function drop(page: Page, selector: string, path: string): Promise<void> {
  const name = path.split('/').at(-1) ?? '';
  const data = readFileSync(path).toString('base64');
  const transfer = await page.evaluateHandle(
    ({ name, data }) => {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name));
      return transfer;
    },
    { name, data },
  );
  await page.dispatchEvent(selector, 'drop', { dataTransfer: transfer });
}

/** What a click on a link saves. */
export async function saved(page: Page, name: string): Promise<Buffer> {
  const waiting = page.waitForEvent('download');
  await page.getByRole('link', { name, exact: true }).click();
  const path = await (await waiting).path();
  return readFileSync(path);
}
