import { expect, it } from 'vitest';
import { EventParser } from '../model/eventStream';
import { challenge } from './oidc';
import { faultAt, pointer } from './problem';

it('reads events however the stream is cut', () => {
  const text = ': hello\n\nevent: progress\ndata: {"a":1}\n\nevent: end\r\ndata: one\r\ndata: two\r\n\r\ndata: x\n\n';
  const expected = [
    { event: 'progress', data: '{"a":1}' },
    { event: 'end', data: 'one\ntwo' },
    { event: 'message', data: 'x' },
  ];
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new EventParser();
    expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual(expected);
  }
});

it('makes the challenge of RFC 7636, Appendix B', async () => {
  const made = await challenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
  expect(made).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});

it('finds the faults of a field and of what is below it', () => {
  const problem = {
    code: 'invalid_value', detail: '', status: 422, title: '', type: '',
    errors: [
      { pointer: '/columns/1/taxonomy', detail: 'no tree' },
      { pointer: '/columns/10', detail: 'other' },
      { pointer: '/name', detail: 'taken', suggested_fix: 'choose another' },
    ],
  };
  expect(faultAt(problem, '/columns/1')).toBe('no tree');
  expect(faultAt(problem, '/name')).toBe('taken; choose another');
  expect(faultAt(problem, '/nam')).toBeUndefined();
  expect(pointer('columns', 3, 'a/b~c')).toBe('/columns/3/a~1b~0c');
});
