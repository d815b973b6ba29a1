import type { AreaEntry } from '../kernel/area-entry.ts'

export const packages: AreaEntry = {
  name: 'packages',
  summary: 'install distribution packages, in the same version on every host',
  verbs: {
    status: 'compare packages and prefixes with hosts.yaml and between hosts',
    up: 'install missing packages with apt or dnf',
    down: 'remove the packages that Muster installed',
    check: 'also compare the contents of all files in the prefixes',
  },
  isCheckReadOnly: true,
  section: () => import('./section.ts'),
  load: () => import('./packages.ts'),
}
