// People sign in with an issuer, which runs here: authorization code with PKCE, and nothing less.

import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { expect, test } from './console';
import { call, freePort, Service } from './service';

interface Issuer {
  readonly url: string;
  readonly server: Server;
}

const base64url = (value: string | Buffer): string => Buffer.from(value).toString('base64url');

/** An issuer that admits everybody as a holder of one hospital. */
async function issuer(organization: string): Promise<Issuer> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const challenges = new Map<string, { challenge: string; redirect: string }>();
  const token = (): string => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: url, aud: 'pais', sub: 'ana', iat: now, exp: now + 600, organization, role: 'holder' };
    const text = `${base64url(JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: 'one' }))}.${base64url(JSON.stringify(claims))}`;
    return `${text}.${base64url(sign('sha256', Buffer.from(text), privateKey))}`;
  };
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? '/', url);
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json', 'Access-Control-Allow-Origin': '*' });
      response.end(JSON.stringify(body));
    };
    const query = Object.fromEntries(asked.searchParams);
    if (asked.pathname === '/.well-known/openid-configuration') {
      answer(200, { issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, jwks_uri: `${url}/keys` });
    } else if (asked.pathname === '/keys') {
      answer(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] });
    } else if (asked.pathname === '/authorize') {
      if (query['code_challenge_method'] !== 'S256' || query['client_id'] !== 'console') return answer(400, {});
      const code = randomUUID();
      challenges.set(code, { challenge: query['code_challenge'] ?? '', redirect: query['redirect_uri'] ?? '' });
      response.writeHead(302, { Location: `${query['redirect_uri'] ?? ''}?code=${code}&state=${query['state'] ?? ''}` });
      response.end();
    } else {
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => {
        const form = Object.fromEntries(new URLSearchParams(body));
        const kept = challenges.get(form['code'] ?? '');
        challenges.delete(form['code'] ?? '');
        const digest = createHash('sha256').update(form['code_verifier'] ?? '').digest('base64url');
        if (kept?.challenge !== digest || kept.redirect !== form['redirect_uri']) return answer(400, {});
        answer(200, { access_token: token(), token_type: 'Bearer' });
      });
    }
  });
  await new Promise<void>((done) => server.listen(Number(new URL(url).port), '127.0.0.1', done));
  return { url, server };
}

test('people sign in with the issuer of their organization', async ({ page }) => {
  const login = await issuer('hospital');
  const service = await Service.start({
    PAIS__OIDC__ISSUER: login.url,
    PAIS__OIDC__AUDIENCE: 'pais',
    PAIS__OIDC__CONSOLE_CLIENT_ID: 'console',
  });
  try {
    const admin = await service.token('operators', 'admin');
    await call(service.url, admin, 'POST', '/v1/organizations', { name: 'hospital' });
    await page.goto(`${service.url}/console/#/policy`);
    await page.getByRole('button', { name: 'Continue with your organization' }).click();
    // Back at the page that was asked for, with nothing of the way in the address.
    await expect(page.getByRole('heading', { name: 'Policy', level: 1 })).toBeVisible();
    expect(page.url()).toBe(`${service.url}/console/#/policy`);
    // A code of somebody else is not taken.
    await page.goto(`${service.url}/console/?code=stolen&state=other`);
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
    await expect(page.getByRole('navigation')).toHaveCount(0);
  } finally {
    await service.stop();
    login.server.close();
  }
});
