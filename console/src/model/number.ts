// Numbers as people type them.

/** The mark between thousands, by language. */
const GROUPED: Readonly<Record<string, RegExp>> = { en: /^[+-]?\d{1,3}(,\d{3})+$/, de: /^[+-]?\d{1,3}(\.\d{3})+$/ };

/** A number with the decimal mark of the language. */
export function written(value: string | number | null | undefined, language: string): string {
  const text = String(value ?? '');
  return language === 'de' ? text.replace('.', ',') : text;
}

/**
 * A number with a point or a comma. What is no number, or could be a thousand as well as one in the language, is
 * returned as it is: the service refuses it and says where.
 */
export function number(text: string, language?: string): number | string {
  const trimmed = text.trim();
  const value = Number(trimmed.replace(',', '.'));
  const isGrouped = language !== undefined && (GROUPED[language]?.test(trimmed) ?? false);
  return trimmed === '' || Number.isNaN(value) || isGrouped ? text : value;
}
