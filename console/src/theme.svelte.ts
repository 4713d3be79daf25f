// Light or dark: as the system is, or as was chosen.

export type Choice = 'system' | 'light' | 'dark';
const KEY = 'pais.theme';

function first(): Choice {
  const chosen = localStorage.getItem(KEY);
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

class Theme {
  choice = $state<Choice>(first());
  #system = matchMedia('(prefers-color-scheme: dark)');
  #isSystemDark = $state(this.#system.matches);

  constructor() {
    this.#system.addEventListener('change', (event) => {
      this.#isSystemDark = event.matches;
      this.#apply();
    });
    this.#apply();
  }

  get isDark(): boolean {
    return this.choice === 'dark' || (this.choice === 'system' && this.#isSystemDark);
  }

  choose(choice: Choice): void {
    this.choice = choice;
    localStorage.setItem(KEY, choice);
    this.#apply();
  }

  #apply(): void {
    document.documentElement.dataset['theme'] = this.isDark ? 'dark' : 'light';
  }
}

export const theme = new Theme();
