// The page that is shown is in the fragment of the address, so that links and the back button work:
// `#/jobs/ID?compare=1`.

export interface Place {
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

export function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const segments = path.split('/').filter(Boolean).map(decode);
  return { segments, query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The address of a page. */
export function to(...segments: string[]): string {
  return '#/' + segments.map(encodeURIComponent).join('/');
}

class Route {
  place = $state<Place>(parse(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.place = parse(location.hash);
    });
  }

  get page(): string {
    return this.place.segments[0] ?? '';
  }

  get id(): string | undefined {
    return this.place.segments[1];
  }

  go(...segments: string[]): void {
    location.hash = to(...segments);
  }
}

export const route = new Route();
