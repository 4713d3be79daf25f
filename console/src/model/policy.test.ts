import { expect, it } from 'vitest';
import { bounded, fill, policyBody } from './policy';

it('asks for what is filled in, and for nothing else', () => {
  expect(policyBody(fill({}), {})).toEqual({});
  const policy = {
    models: ['lkc' as const], k_min: 5, c_max: 0.5, quasi_identifiers: ['PLZ', 'sex'], recipients: ['bts'],
    require_approval: true, sensitive_values: { diagnosis: ['HIV', 'Syphilis'], surgery: 'all' as const },
  };
  expect(policyBody(fill(policy), policy)).toEqual(policy);
  expect(policyBody({ ...fill({}), c_max: '0,25', k_min: 'many' }, {})).toEqual({ c_max: 0.25, k_min: 'many' });
});

it('names the lines that are not a column, a colon and values', () => {
  const text = 'diagnosis HIV\n\n diagnosis: HIV | Syphilis \nDiagnose = HIV\nsurgery:\n: HIV\nb: HIV |\nsurgery: all\nsurgery: x\nc: d: e';
  expect(bounded(text, {})).toEqual({
    values: { diagnosis: ['HIV', 'Syphilis'], surgery: 'all' },
    wrong: [1, 4, 5, 6, 7, 9, 10],
  });
});

it('leaves a line as it was, whatever its names have in them', () => {
  const values = { 'FHIR: code': ['a: b', 'c | d'], plain: ['all'] };
  expect(bounded(fill({ sensitive_values: values }).sensitive_values, { sensitive_values: values })).toEqual({ values, wrong: [] });
});
