// The job that is being asked for. It stays while other pages are open.

import { emptyForm, type JobForm } from '../../model/privacy';

export const form: JobForm = $state(emptyForm());

export function clearForm(): void {
  Object.assign(form, emptyForm());
}
