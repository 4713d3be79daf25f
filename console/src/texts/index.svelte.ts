// The language of the texts: that of the browser, or the one that was chosen.

import { de } from './de';
import { en, type Texts } from './en';

export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof LANGUAGES;

const TEXTS: Record<Language, Texts> = { en, de };
const KEY = 'pais.language';

function first(): Language {
  const chosen = localStorage.getItem(KEY);
  if (chosen === 'en' || chosen === 'de') return chosen;
  return navigator.language.toLowerCase().startsWith('de') ? 'de' : 'en';
}

class I18n {
  language = $state<Language>(first());

  get t(): Texts {
    return TEXTS[this.language];
  }

  choose(language: Language): void {
    this.language = language;
    localStorage.setItem(KEY, language);
  }
}

export const i18n = new I18n();
