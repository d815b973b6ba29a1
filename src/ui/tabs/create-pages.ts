/** Makes the pages of the tabs, the panel of runs and copies, and what several of them share. */
import { DisposableStore } from '../../base/disposable.ts'
import type { OwnMachinePort } from '../../ops/net/watch/watch-hosts.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'
import { BringUpPage } from '../bring-up/bring-up-page.ts'
import type { BringUpPort } from '../bring-up/bring-up-view.ts'
import type { ConsoleParts } from '../console/console-app.ts'
import { ForwardsPanel, type ForwardsPorts } from '../forwards/forwards-panel.ts'
import { ClusterWatch } from '../jobs/cluster-watch.ts'
import { JobsPage } from '../jobs/jobs-page.ts'
import type { JobsPort } from '../jobs/queue-view.ts'
import { QueueWatch } from '../jobs/queue-watch.ts'
import type { NetTestsPort } from '../network/net-tests-port.ts'
import { NetworkPage } from '../network/network-page.ts'
import { WatchedHosts } from '../network/watched-hosts.ts'
import { PackingPage } from '../packing/packing-page.ts'
import { RayLine } from '../ray/ray-line.ts'
import type { RayPort } from '../ray/ray-view.ts'
import { RayWatch } from '../ray/ray-watch.ts'
import type { PageContext } from '../state/console-state.ts'
import { WorkPanel } from '../work-views/work-panel.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { LogPage } from './log-page.ts'

export type PagePorts = {
  readonly fleet: Pick<Fleet, 'on' | 'connection' | 'session'>
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly work: WorkPort
  readonly bringUp: BringUpPort
  /** The machine that the console runs on, where it can be looked at. */
  readonly ownMachine?: OwnMachinePort | undefined
  readonly jobs: JobsPort
  readonly ray: RayPort
  readonly netTests: NetTestsPort
  readonly knownDashboards: ForwardsPorts['knownDashboards']
  readonly resolveHosts: ResolveHosts
}

export function createPages(context: PageContext, ports: PagePorts): ConsoleParts {
  const { jobs, resolveHosts } = ports
  const owned = new DisposableStore()
  const watched = owned.own(new WatchedHosts({ ...ports, clock: context.clock }))
  const queue = owned.own(new QueueWatch(context, jobs))
  const clusters = owned.own(new ClusterWatch(context, queue, jobs))
  const ray = owned.own(new RayWatch(context, ports.ray, ports.fleet))
  const work = owned.own(new WorkPanel(context, ports))
  const bringUp = owned.own(new BringUpPage(context, ports.bringUp))
  const packing = owned.own(new PackingPage(context, queue, { jobs, ray, watched, clusters }))
  const rayLine = new RayLine(context, {
    ray,
    work,
    resolveHosts,
    showNodes: () => packing.showRay(),
    bringUp: (what, hosts) => void bringUp.begin(what, 'ray', hosts),
  })
  const pages = {
    'bring-up': bringUp,
    network: owned.own(new NetworkPage(context, watched, ports)),
    packing,
    jobs: owned.own(new JobsPage(context, queue, { ...ports, watched, clusters })),
    log: owned.own(new LogPage(context)),
  }
  const forwards = owned.own(new ForwardsPanel(context, ports))
  return { pages, work, rayLine, forwards, [Symbol.dispose]: () => owned[Symbol.dispose]() }
}
