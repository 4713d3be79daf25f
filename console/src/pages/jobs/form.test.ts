import { expect, it } from 'vitest';
import { chooseDataset, clearForm, form } from './form.svelte';

it('takes nothing that was typed in for the columns of one dataset to another', () => {
  clearForm();
  chooseDataset('one');
  form.values.k = '7';
  form.acknowledged['case'] = 'meant for one';
  form.levels['age'] = '2';
  form.sensitive['diagnosis'] = 'HIV';
  chooseDataset('one');
  expect(form.acknowledged).toEqual({ case: 'meant for one' });
  chooseDataset('two');
  expect(form).toMatchObject({ dataset: 'two', acknowledged: {}, levels: {}, sensitive: {} });
  expect(form.values.k).toBe('7');
});
