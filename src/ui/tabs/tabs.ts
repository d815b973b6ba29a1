/** The tabs of the console, in the order of the header. Every tab but the shells has a page. */

/** `key`: shows the tab after the leader, and alone where no typed key goes to a host. `help`: for the key's action. */
export const TABS = [
  { id: 'shells', key: '1', title: 'Shells', help: 'Show the shells. On other tabs, the number needs no leader.' },
  { id: 'bring-up', key: '2', title: 'Bring-up', help: 'Compare the hosts with hosts.yaml, and bring them up.' },
  { id: 'network', key: '3', title: 'Network', help: 'Show CPU, memory, network, disks, NFS and GPUs live.' },
  { id: 'packing', key: '4', title: 'Packing', help: 'Show which jobs run on which host and device, and which wait.' },
  {
    id: 'jobs',
    key: '5',
    title: 'Jobs',
    help: 'Show the job queue with its logs; hold, release, cancel and retry jobs.',
  },
  { id: 'log', key: '6', title: 'Log', help: 'Show what happened: connections, errors, skipped keys.' },
] as const

export type Tab = (typeof TABS)[number]['id']
export type PageTab = Exclude<Tab, 'shells'>

export const PAGE_TABS = TABS.filter((tab) => tab.id !== 'shells')

export const titleOf = (tab: Tab): string => TABS.find(({ id }) => id === tab)?.title ?? ''

/** Undefined: the key shows no tab. */
export const tabOfKey = (label: string): Tab | undefined => TABS.find(({ key }) => key === label)?.id
