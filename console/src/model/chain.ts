// The chain of the log, as far as its page shows it: each event names the hash of the one before.

export interface Link {
  readonly seq: number;
  readonly hash: string;
  readonly previous_hash: string;
}

export interface ChainCheck {
  readonly isIntact: boolean;
  readonly events: number;
  /** The first event, from the newest on, that does not fit to the one before. */
  readonly at: number;
}

/** Checks events, newest first, of a log from which none is filtered out. */
export function checkChain(events: readonly Link[]): ChainCheck {
  for (let index = 0; index + 1 < events.length; index += 1) {
    const [newer, older] = [events[index], events[index + 1]];
    if (newer && older && (newer.previous_hash !== older.hash || newer.seq !== older.seq + 1)) {
      return { isIntact: false, events: events.length, at: newer.seq };
    }
  }
  return { isIntact: true, events: events.length, at: 0 };
}
