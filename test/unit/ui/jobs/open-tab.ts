/** The tabs Jobs and Packing of a console, over a queue and hosts that a test makes up. */
import { setImmediate } from 'node:timers/promises'
import { linesOf } from '../../../../src/cli/job/console-studies.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'
import type { JobExtent } from '../../../../src/scheduler/jobs/job-group.ts'
import { bestTrials } from '../../../../src/scheduler/study/front.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars } from '../../../../src/ui/console/header.ts'
import type { ClusterSource } from '../../../../src/ui/jobs/queue-view.ts'
import type { StudyReading } from '../../../../src/ui/jobs/study-view.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { createConsoleHarness } from '../console/console-harness.ts'
import { FakeQueue, hostSpecs, statusOf } from './fake-queue.ts'

const LEADER = '\x1d'

/** `key`: of the tab. */
export async function openQueueTab(
  key: string,
  columns: number,
  rows: number,
  jobs: readonly Job[],
  arrays: Readonly<Record<number, number>>,
  studies: readonly StudyReading[] = [],
  sources: readonly ClusterSource[] = [],
  extents: Readonly<Record<number, JobExtent>> = {},
) {
  const alone = statusOf(hostSpecs(3), jobs, { arrays })
  const lines = studies.map(({ study, counts, trials }) => ({
    study,
    counts,
    best: bestTrials(trials, study.spec.metrics.slice(0, 1))[0],
  }))
  const status = {
    ...alone,
    groups: linesOf(
      alone.groups.map((group) => ({ ...group, extent: extents[group.spec] })),
      lines,
    ),
  }
  const queue = new FakeQueue(jobs, status)
  queue.sources = sources
  for (const reading of studies) queue.studies.set(reading.study.id, reading)
  const logs: Parameters<WorkPort['startCommand']>[] = []
  const work: WorkPort = {
    startCommand(...order) {
      logs.push(order)
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
    copy: async () => undefined,
    saveOutput: async () => '',
    fanOut: 64,
    spillDirectory: '',
  }
  const harness = createConsoleHarness({ hosts: ['n1', 'n2', 'n3'], size: { columns, rows }, jobs: queue, work })
  const text = (): string => {
    const { state, page } = harness.console
    const panes = page?.panes(areaOf(state), themes.none) ?? []
    return panes.flatMap(({ notice }) => notice.map((row) => row.map((span) => span.text).join(''))).join('\n')
  }
  const titles = (): string[] => {
    const panes = harness.console.page?.panes(areaOf(harness.console.state), themes.none) ?? []
    return panes.map(({ title }) => title.map((span) => span.text).join(''))
  }
  const press = async (keys: string) => {
    harness.type(keys)
    await setImmediate()
  }
  const hints = (): string => {
    const { left } = footerBars(harness.console.state, themes.none)
    return left.map((part) => part.text).join('')
  }
  await press(`${LEADER}${key}`)
  return { ...harness, queue, logs, text, titles, hints, press }
}
