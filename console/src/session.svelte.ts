// Who is signed in. The token is in the memory of this page alone: it is gone when the page is.

export type Role = 'admin' | 'holder' | 'recipient' | 'auditor' | 'officer';

/** The answer of `GET /v1/whoami`. */
export interface Caller {
  readonly organization: { readonly id: string; readonly name: string };
  readonly role: Role;
  readonly token_id?: string | null;
  readonly label?: string | null;
  readonly expires_at?: string | null;
}

/** Why a session has ended although nobody signed out. */
export type End = 'expired' | 'idle';

/** Without input for this long, the session ends. */
export const IDLE_MS = 15 * 60_000;
/** The warning comes this long before. */
export const WARNING_MS = 60_000;

class Session {
  #token: string | null = null;
  caller = $state<Caller | null>(null);
  /** Set while the pages wait for the same person to sign in again. */
  ended = $state<End | null>(null);
  /** Number of sign-ins; what was loaded before is loaded again. */
  generation = $state(0);
  /** Number of sessions; pages begin anew with each. */
  sessions = $state(0);
  /** Whether the session is about to end because there was no input. */
  warned = $state(false);
  #lastInput = Date.now();

  get token(): string | null {
    return this.#token;
  }

  begin(token: string, caller: Caller): void {
    const before = this.caller;
    const same =
      before !== null && before.organization.id === caller.organization.id && before.role === caller.role;
    if (!same) this.sessions += 1;
    this.#token = token;
    this.caller = caller;
    this.ended = null;
    this.generation += 1;
    this.active();
  }

  /** Forgets the token; the pages keep what was typed in until somebody signs in again. */
  end(why: End): void {
    if (this.#token === null) return;
    this.#token = null;
    this.warned = false;
    this.ended = why;
  }

  signOut(): void {
    this.#token = null;
    this.caller = null;
    this.ended = null;
    this.warned = false;
    this.sessions += 1;
  }

  active(): void {
    this.#lastInput = Date.now();
    this.warned = false;
  }

  /** Ends the session, or warns, if there was no input for too long. */
  checkIdle(now: number): void {
    if (this.#token === null) return;
    const idle = now - this.#lastInput;
    if (idle >= IDLE_MS) this.end('idle');
    else this.warned = idle >= IDLE_MS - WARNING_MS;
  }
}

export const session = new Session();

/** Starts to watch for input. */
export function watchInput(): void {
  for (const kind of ['pointerdown', 'keydown', 'wheel', 'touchstart'] as const) {
    // While the warning is shown, only its button keeps the session.
    addEventListener(kind, () => session.warned || session.active(), { passive: true, capture: true });
  }
  setInterval(() => session.checkIdle(Date.now()), 5_000);
}
