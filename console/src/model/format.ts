// Numbers and times, as people of the chosen language write them.

import { i18n } from '../texts/index.svelte';

export function count(value: number): string {
  return new Intl.NumberFormat(i18n.language).format(value);
}

export function percent(share: number, digits = 1): string {
  const options = { style: 'percent', maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(i18n.language, options).format(share);
}

export function decimal(value: number, digits = 4): string {
  return new Intl.NumberFormat(i18n.language, { maximumSignificantDigits: digits }).format(value);
}

export function time(text: string | null | undefined): string {
  if (!text) return '–';
  const options = { dateStyle: 'medium', timeStyle: 'short' } as const;
  return new Intl.DateTimeFormat(i18n.language, options).format(new Date(text));
}

export function bytes(value: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;
  const power = Math.min(Math.floor(Math.log10(Math.max(value, 1)) / 3), units.length - 1);
  const options = { style: 'unit', unit: units[power] ?? 'byte', maximumFractionDigits: 1 } as const;
  return new Intl.NumberFormat(i18n.language, options).format(value / 1000 ** power);
}

/** The end of a day that a person chose, as the API takes it; `undefined` for none. */
export function endOfDay(date: string): string | undefined {
  return date === '' ? undefined : new Date(`${date}T23:59:59`).toISOString();
}

export function shortId(id: string): string {
  return id.slice(-8);
}
