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
import type { Page, PageContext } from '../state/console-state.ts'
import { WorkPanel } from '../work-views/work-panel.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { FileContext, nameInConsole, type OpenFile } from './file-context.ts'
import { FilesPage } from './files-page.ts'
import { LogPage } from './log-page.ts'
import { watchedOfFile } from './watched-of-file.ts'

/** What the tabs about one hosts.yaml need. Hosts have the names that it gives them. */
export type FilePorts = {
  /** Undefined: the only one, whose names are those of the console. */
  readonly file?: OpenFile
  readonly fleet: Pick<Fleet, 'on'>
  readonly work: WorkPort
  readonly bringUp: BringUpPort
  readonly jobs: JobsPort
  readonly ray: RayPort
}

export type PagePorts = {
  readonly fleet: Pick<Fleet, 'on' | 'connection' | 'endpoint' | 'session'>
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly work: WorkPort
  /** The machine that the console runs on, where it can be looked at. */
  readonly ownMachine?: OwnMachinePort | undefined
  readonly netTests: NetTestsPort
  readonly knownDashboards: ForwardsPorts['knownDashboards']
  readonly resolveHosts: ResolveHosts
  /** One, or those of a workspace. */
  readonly files: readonly FilePorts[]
}

export function createPages(context: PageContext, ports: PagePorts): ConsoleParts {
  const owned = new DisposableStore()
  const watched = owned.own(new WatchedHosts({ ...ports, clock: context.clock }))
  const work = owned.own(new WorkPanel(context, ports))
  const shared = { context, owned, watched, work, resolveHosts: ports.resolveHosts }
  const files = ports.files.map((file, at) => createFilePages(file, at, shared))
  /** In a workspace, of the file that is shown. */
  const pageOf = (tab: 'bringUp' | 'packing' | 'jobs'): Page => {
    const [first] = files
    if (first !== undefined && first.file === undefined) return first[tab]
    const pages = files.flatMap(({ file, [tab]: page }) => (file === undefined ? [] : [{ file, page }]))
    return new FilesPage(context, pages)
  }
  const lineShown = () => files[context.state.files.shown]?.rayLine
  const pages = {
    'bring-up': pageOf('bringUp'),
    network: owned.own(new NetworkPage(context, watched, ports)),
    packing: pageOf('packing'),
    jobs: pageOf('jobs'),
    log: owned.own(new LogPage(context)),
  }
  const forwards = owned.own(new ForwardsPanel(context, ports))
  const rayLine = { read: (text: string) => lineShown()?.read(text), open: () => lineShown()?.open() }
  return { pages, work, rayLine, forwards, [Symbol.dispose]: () => owned[Symbol.dispose]() }
}

type Shared = Pick<PagePorts, 'resolveHosts'> & {
  readonly context: PageContext
  readonly owned: DisposableStore
  readonly watched: WatchedHosts
  readonly work: WorkPanel
}

/** The pages about one hosts.yaml. `at`: its place among several. */
function createFilePages(
  ports: FilePorts,
  at: number,
  { context: whole, owned, work, resolveHosts, ...shared }: Shared,
) {
  const { jobs, file } = ports
  const context = file === undefined ? whole : new FileContext(whole, file, at)
  const watched = file === undefined ? shared.watched : watchedOfFile(shared.watched, whole, file)
  const queue = owned.own(new QueueWatch(context, jobs))
  const clusters = owned.own(new ClusterWatch(context, queue, jobs))
  const ray = owned.own(new RayWatch(context, ports.ray, ports.fleet))
  const bringUp = owned.own(new BringUpPage(context, ports.bringUp))
  const packing = owned.own(new PackingPage(context, queue, { jobs, ray, watched, clusters }))
  const rayLine = new RayLine(context, {
    ray,
    start: (order, handlers) => ports.ray.start(order, handlers),
    work: {
      get busyReason() {
        return work.busyReason
      },
      begin: (request, hosts) => work.begin(request, file ? hosts.map((host) => nameInConsole(file, host)) : hosts),
    },
    resolveHosts,
    showNodes: () => packing.showRay(),
    bringUp: (what, hosts) => void bringUp.begin(what, 'ray', hosts),
  })
  return {
    file,
    bringUp,
    packing,
    jobs: owned.own(new JobsPage(context, queue, { ...ports, watched, clusters })),
    rayLine,
  }
}
