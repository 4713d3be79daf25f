// One service for all tests that do not change its settings or stop it; each test has organizations of its
// own in it.

import { Service } from './service';

export default async function setup(): Promise<() => Promise<void>> {
  const service = await Service.start();
  process.env['CONSOLE_URL'] = service.url;
  process.env['CONSOLE_ADMIN'] = await service.token('operators', 'admin');
  return () => service.stop();
}
