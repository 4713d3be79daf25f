// The pages, and who may open them.

import type { Component } from 'svelte';
import type { Role } from '../session.svelte';
import Approvals from './Approvals.svelte';
import Compare from './compare/Compare.svelte';
import Datasets from './Datasets.svelte';
import Hierarchies from './Hierarchies.svelte';
import Jobs from './Jobs.svelte';
import Log from './Log.svelte';
import Organizations from './Organizations.svelte';
import Policy from './Policy.svelte';
import Publications from './Publications.svelte';
import Releases from './Releases.svelte';

interface Page {
  readonly component: Component;
  readonly roles: readonly Role[];
  /** Whether the navigation has a link to it. */
  readonly isLinked: boolean;
}

const page = (component: Component, roles: readonly Role[], isLinked = true): Page => ({
  component,
  roles,
  isLinked,
});

/** By the first segment of the address, in the order of the navigation. */
export const PAGES: Readonly<Record<string, Page>> = {
  datasets: page(Datasets, ['holder', 'officer']),
  hierarchies: page(Hierarchies, ['holder', 'officer'], false),
  jobs: page(Jobs, ['holder', 'officer']),
  releases: page(Releases, ['holder', 'officer', 'recipient']),
  publications: page(Publications, ['holder', 'officer', 'recipient']),
  approvals: page(Approvals, ['holder', 'officer']),
  compare: page(Compare, ['holder', 'officer'], false),
  policy: page(Policy, ['holder', 'officer']),
  log: page(Log, ['officer', 'auditor']),
  organizations: page(Organizations, ['admin']),
};

export function mayOpen(role: Role, { roles }: Page): boolean {
  return roles.includes(role);
}

/** The pages of a role's navigation. */
export function navigation(role: Role): string[] {
  const entries = Object.entries(PAGES);
  return entries.filter(([, one]) => one.isLinked && mayOpen(role, one)).map(([name]) => name);
}
