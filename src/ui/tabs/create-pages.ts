/** Which page belongs to which tab. */
import { BringUpPage } from '../bring-up/bring-up-page.ts'
import type { Console } from '../console/console.ts'
import { JobsPage } from '../jobs/jobs-page.ts'
import { QueueWatch } from '../jobs/queue-watch.ts'
import { NetworkPage } from '../network/network-page.ts'
import { PackingPage } from '../packing/packing-page.ts'
import { LogPage } from './log-page.ts'
import type { Page } from './page.ts'
import type { PageTab } from './tabs.ts'

export type Pages = Readonly<Record<PageTab, Page>> & {
  readonly 'bring-up': BringUpPage
  readonly network: NetworkPage
  readonly packing: PackingPage
}

export function createPages(console: Console): Pages {
  const queue = new QueueWatch(console)
  return {
    'bring-up': new BringUpPage(console),
    network: new NetworkPage(console),
    packing: new PackingPage(console, queue),
    jobs: new JobsPage(console, queue),
    log: new LogPage(console),
  }
}
