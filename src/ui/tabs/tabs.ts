/** The tabs of the console, in the order of the header. What one that is no shells shows and does is its page. */

/** `key`: chooses it after the leader, and alone where no typed key goes to a host. */
export const TABS = [
  { id: 'shells', key: '1', title: 'Shells' },
  { id: 'bring-up', key: '2', title: 'Bring-up' },
  { id: 'network', key: '3', title: 'Network' },
  { id: 'packing', key: '4', title: 'Packing' },
  { id: 'jobs', key: '5', title: 'Jobs' },
  { id: 'log', key: '6', title: 'Log' },
] as const

export type Tab = (typeof TABS)[number]['id']
export type PageTab = Exclude<Tab, 'shells'>

export const PAGE_TABS = TABS.filter((tab) => tab.id !== 'shells')

export const titleOf = (tab: Tab): string => TABS.find(({ id }) => id === tab)?.title ?? ''

/** Undefined: the key chooses none. */
export const tabOfKey = (label: string): Tab | undefined => TABS.find(({ key }) => key === label)?.id
