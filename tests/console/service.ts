// The program, running on a data directory of its own with the embedded PostgreSQL.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const PROGRAM = process.env['PAIS_BIN'] ?? resolve(__dirname, '../../target/debug/pais');

export async function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

export class Service {
  #process: ChildProcess | null = null;
  #log: Buffer[] = [];

  private constructor(
    readonly port: number,
    readonly dataDir: string,
    readonly settings: Readonly<Record<string, string>>,
  ) {}

  static async start(settings: Record<string, string> = {}): Promise<Service> {
    const service = new Service(await freePort(), mkdtempSync(join(tmpdir(), 'pais-console.')), settings);
    await service.run();
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get #environment(): NodeJS.ProcessEnv {
    const { DATABASE_URL: _, ...others } = process.env;
    return { ...others, ...this.settings };
  }

  /** Starts the program, again after `pause`, and waits until it can serve. */
  async run(): Promise<void> {
    const program = spawn(
      PROGRAM,
      ['serve', '--listen', `127.0.0.1:${this.port}`, '--data-dir', this.dataDir],
      { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    program.stdout.on('data', (text: Buffer) => this.#log.push(text));
    program.stderr.on('data', (text: Buffer) => this.#log.push(text));
    this.#process = program;
    for (;;) {
      if (program.exitCode !== null) throw new Error(`the service ended: ${Buffer.concat(this.#log).toString()}`);
      const ready = await fetch(`${this.url}/readyz`).catch(() => null);
      if (ready?.ok) return;
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  /** Stops the program; its data stay. */
  async pause(): Promise<void> {
    const program = this.#process;
    this.#process = null;
    if (program === null || program.exitCode !== null) return;
    const ended = new Promise((done) => program.once('exit', done));
    program.kill('SIGTERM');
    await ended;
  }

  async stop(): Promise<void> {
    await this.pause();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** A token, made on the command line. */
  async token(organization: string, role: string): Promise<string> {
    const made = await promisify(execFile)(
      PROGRAM,
      ['token', 'create', '--organization', organization, '--role', role, '--data-dir', this.dataDir],
      { env: this.#environment },
    );
    return made.stdout.trim();
  }
}

/** A call of the API; the document of its answer. */
export async function call<T = Record<string, unknown>>(
  url: string,
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const isText = typeof body === 'string';
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': isText ? 'text/csv' : 'application/json' },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === '' ? null : JSON.parse(text)) as T;
}

