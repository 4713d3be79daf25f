import { expect, it } from 'vitest';
import { definition, emptyForm, isSweep, keeps, MODELS, PRESETS } from './privacy';
import { checkChain } from './chain';

const JOB = '00000000-0000-0000-0000-000000000001';

it('asks for what is filled in, and for nothing else', () => {
  const form = { ...emptyForm(), dataset: JOB, sensitive: { diagnosis: 'HIV\n\n Syphilis ', units: '' } };
  expect(definition(form, ['diagnosis', 'units'])).toEqual({
    dataset_id: JOB,
    privacy: { model: 'lkc', l: 3, k: 10, c: 0.5, sensitive_values: { diagnosis: ['HIV', 'Syphilis'] } },
  });
});

it('takes lists, decimal commas and several objectives', () => {
  const form = emptyForm();
  form.values.c = '0,25';
  form.lists.k = '5; 10 20';
  form.objectives = ['ncp', 'discernibility'];
  form.recoding = 'both';
  expect(definition(form, [])).toMatchObject({
    privacy: { k: [5, 10, 20], c: 0.25 },
    utility: { objective: ['ncp', 'discernibility'] },
    recoding: ['global', 'local'],
  });
});

it('leaves what is no number to the service, which says so', () => {
  const form = emptyForm();
  form.values.k = 'many';
  expect(definition(form, [])).toMatchObject({ privacy: { k: 'many' } });
});

it('sends the parameters of the model alone', () => {
  for (const model of Object.keys(MODELS) as (keyof typeof MODELS)[]) {
    const { privacy } = definition({ ...emptyForm(), model }, ['diagnosis']) as { privacy: object };
    expect(Object.keys(privacy).toSorted()).toEqual(['model', ...MODELS[model].parameters].toSorted());
  }
});

it('has presets that change the guarantee, not the table', () => {
  for (const preset of Object.values(PRESETS)) {
    expect(definition({ ...emptyForm(), dataset: JOB, ...preset }, [])['dataset_id']).toBe(JOB);
  }
});

it('has a preset for each guideline, as in examples/guidelines', () => {
  const job = (preset: keyof typeof PRESETS) => definition({ ...emptyForm(), dataset: JOB, ...PRESETS[preset] }, []);
  expect(job('opinion')).toEqual({
    dataset_id: JOB,
    privacy: { model: 'alpha_k', k: 10, alpha: 0.5 },
    recoding: 'local',
  });
  expect(job('ema')).toEqual({ dataset_id: JOB, privacy: { model: 'k_anonymity', k: 12 }, recoding: 'local' });
  expect(job('cms')).toEqual({ dataset_id: JOB, privacy: { model: 'k_anonymity', k: 11 }, recoding: 'local' });
  const levels = { zip: '1', sex: ' ' };
  expect(definition({ ...emptyForm(), dataset: JOB, ...PRESETS.harbor, levels }, [])).toEqual({
    dataset_id: JOB,
    privacy: { model: 'k_anonymity', k: 5 },
    recoding: 'local',
    pre_generalization: { zip: { level: 1 } },
  });
});

it('knows whether a form still asks for what a preset has set', () => {
  const ema = () => ({ ...emptyForm(), ...structuredClone(PRESETS.ema) });
  expect(keeps(ema(), 'ema', {})).toBe(true);
  expect(keeps({ ...ema(), suppression: '0.05', levels: { age: '1' } }, 'ema', {})).toBe(true);
  expect(keeps({ ...ema(), model: 'confidence_bounding' }, 'ema', {})).toBe(false);
  expect(keeps({ ...ema(), recoding: 'both' }, 'ema', {})).toBe(false);
  expect(keeps({ ...ema(), lists: { ...emptyForm().lists, k: '2 12' } }, 'ema', {})).toBe(false);
  const harbor = { ...emptyForm(), ...structuredClone(PRESETS.harbor), levels: { zip: '1', sex: '' } };
  expect(keeps(harbor, 'harbor', { zip: '1' })).toBe(true);
  expect(keeps({ ...harbor, levels: { zip: '' } }, 'harbor', { zip: '1' })).toBe(false);
});

it('recognizes a sweep', () => {
  const one = { dataset_id: JOB, privacy: { model: 'lkc', l: 2, k: 5, c: 0.5 } } as const;
  expect(isSweep(one)).toBe(false);
  expect(isSweep({ ...one, privacy: { ...one.privacy, k: [5, 10] } })).toBe(true);
  expect(isSweep({ ...one, recoding: ['global', 'local'] })).toBe(true);
});

it('sees a missing, an exchanged and a changed event in the log', () => {
  const events = [4, 3, 2, 1].map((seq) => ({ seq, hash: `h${String(seq)}`, previous_hash: `h${String(seq - 1)}` }));
  expect(checkChain(events)).toEqual({ isIntact: true, events: 4, at: 0 });
  expect(checkChain(events.filter(({ seq }) => seq !== 2))).toMatchObject({ isIntact: false, at: 3 });
  expect(checkChain(events.map((event) => (event.seq === 3 ? { ...event, hash: 'x' } : event)))).toMatchObject({
    isIntact: false,
    at: 4,
  });
});
