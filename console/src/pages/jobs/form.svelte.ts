// The job that is being asked for. It stays while other pages are open.

import { emptyForm, type JobForm } from '../../model/privacy';

export const form: JobForm = $state(emptyForm());

export function clearForm(): void {
  Object.assign(form, emptyForm());
}

/** Asks for a job of this dataset. What was typed in for columns of another one does not go along. */
export function chooseDataset(id: string): void {
  if (id === form.dataset) return;
  Object.assign(form, { dataset: id, sensitive: {}, levels: {}, acknowledged: {} });
}
