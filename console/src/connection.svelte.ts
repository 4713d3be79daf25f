// Whether the service answers. While it does not, it is asked again and again; what failed to load is then
// loaded anew.

class Connection {
  isLost = $state(false);
  /** Number of times that the service came back. */
  returns = $state(0);

  lost(): void {
    if (this.isLost) return;
    this.isLost = true;
    void this.#wait();
  }

  found(): void {
    if (!this.isLost) return;
    this.isLost = false;
    this.returns += 1;
  }

  async #wait(): Promise<void> {
    for (let pause = 500; this.isLost; pause = Math.min(2 * pause, 5_000)) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      try {
        const response = await fetch('/readyz', { cache: 'no-store' });
        // Where the probes have a listener of their own, any answer shows that the service is there.
        if (response.ok || response.status === 404) this.found();
      } catch {
        // Not yet.
      }
    }
  }
}

export const connection = new Connection();
