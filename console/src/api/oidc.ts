// Signing in with an OpenID Connect issuer: authorization code with PKCE (RFC 7636). The verifier is kept
// for this browser tab until the issuer leads back; the token is not kept at all.

export interface SignIn {
  readonly issuer: string;
  readonly client_id: string;
}

interface Pending {
  readonly state: string;
  readonly verifier: string;
  readonly hash: string;
}

const KEY = 'pais.sign-in';

/** Whether and where people sign in with an issuer. */
export async function config(): Promise<SignIn | null> {
  const response = await fetch('/console/config.json');
  if (!response.ok) return null;
  const document = (await response.json()) as { oidc?: SignIn };
  return document.oidc ?? null;
}

interface Discovery {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
}

async function discover(issuer: string): Promise<Discovery> {
  const response = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (!response.ok) throw new Error(`${issuer}: HTTP ${String(response.status)}`);
  return (await response.json()) as Discovery;
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** The challenge of a verifier: RFC 7636, 4.2, method S256. */
export async function challenge(verifier: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

function returnAddress(): string {
  return `${location.origin}/console/`;
}

/** Leaves for the issuer. */
export async function leave(signIn: SignIn): Promise<void> {
  const { authorization_endpoint } = await discover(signIn.issuer);
  const pending: Pending = { state: random(), verifier: random(), hash: location.hash };
  sessionStorage.setItem(KEY, JSON.stringify(pending));
  const url = new URL(authorization_endpoint);
  const parameters = {
    response_type: 'code',
    client_id: signIn.client_id,
    redirect_uri: returnAddress(),
    scope: 'openid',
    state: pending.state,
    code_challenge: await challenge(pending.verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** The token, where the issuer has just led back here with a code; `null` where it has not. */
export async function comeBack(signIn: SignIn): Promise<string | null> {
  const query = new URLSearchParams(location.search);
  const stored = sessionStorage.getItem(KEY);
  if (stored === null || (!query.has('code') && !query.has('error'))) return null;
  sessionStorage.removeItem(KEY);
  const pending = JSON.parse(stored) as Pending;
  history.replaceState(null, '', `/console/${pending.hash}`);
  // The page of the fragment is shown, as if a link had led to it.
  dispatchEvent(new HashChangeEvent('hashchange'));
  if (query.get('state') !== pending.state) throw new Error('state');
  const code = query.get('code');
  if (code === null) throw new Error(query.get('error_description') ?? query.get('error') ?? '');
  const { token_endpoint } = await discover(signIn.issuer);
  const response = await fetch(token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      client_id: signIn.client_id,
      redirect_uri: returnAddress(),
      code_verifier: pending.verifier,
    }),
  });
  if (!response.ok) throw new Error(`${signIn.issuer}: HTTP ${String(response.status)}`);
  const { access_token } = (await response.json()) as { access_token?: string };
  return access_token ?? null;
}
