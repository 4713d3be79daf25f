// Numbers and times, as people of the chosen language write them.

import { i18n } from '../texts/index.svelte';

export function count(value: number): string {
  return new Intl.NumberFormat(i18n.language).format(value);
}

/** A share as a percentage. What is not quite nothing or everything does not look so. */
export function percent(share: number, digits = 1): string {
  const options = { style: 'percent', maximumFractionDigits: digits } as const;
  const text = (value: number): string => new Intl.NumberFormat(i18n.language, options).format(value);
  const least = 0.01 / 10 ** digits;
  if (share > 0 && share < least / 2) return `< ${text(least)}`;
  if (share < 1 && share >= 1 - least / 2) return `> ${text(1 - least)}`;
  return text(share);
}

/** A share that is a bound: as `percent`, and rounded up. */
export function atMost(share: number, digits = 1): string {
  const unit = 100 * 10 ** digits;
  // 0.07 * 100 is a little more than 7.
  return percent(Math.max(0, Math.ceil(share * unit - 1e-9)) / unit, digits);
}

/** A number of rows, or of persons. */
export function counted(number: number, ofPersons: boolean): string {
  const { units } = i18n.t;
  return (ofPersons ? units.persons : units.rows)(number, count(number));
}

export function decimal(value: number, digits = 4): string {
  return new Intl.NumberFormat(i18n.language, { maximumSignificantDigits: digits }).format(value);
}

/** Names in a sentence; of many the first ones. */
export function listed(names: readonly string[]): string {
  const most = 8;
  if (names.length > most) return `${names.slice(0, most).join(', ')} ${i18n.t.stepper.more(names.length - most)}`;
  return new Intl.ListFormat(i18n.language).format(names);
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
