import { count, line, map, number, output, text } from './shape.ts'

const speed = { placementsPerSecond: number, 'p50Us?': number, 'p99Us?': number }

export const fleet = output(
  'simulate-fleet',
  '`muster simulate fleet --json`',
  line('simulation', 'A policy.', {
    policy: text,
    nodes: count,
    gangs: count,
    placements: count,
    ...speed,
    allocationPercent: number,
    memoryBytes: count,
  }),
)

export const openb = output(
  'simulate-openb',
  '`muster simulate openb --json`',
  line('simulation', 'A policy.', {
    policy: text,
    variant: text,
    seed: count,
    allocationPercent: map(number),
    placements: count,
    dropped: count,
    ...speed,
  }),
  line('simulation', 'A policy, with --churn.', {
    policy: text,
    load: number,
    copies: count,
    requests: count,
    allocationPercent: number,
    averageWaitS: number,
    maximumWaitS: number,
    waitedPercent: number,
  }),
)

export const gangs = output(
  'simulate-gangs',
  '`muster simulate gangs --json`',
  line('instance', 'An instance.', {
    name: text,
    gpuPercent: number,
    'ratioToBest?': number,
    placed: count,
    gangs: count,
  }),
  line('simulation', 'All of them.', { policy: text, 'meanRatio?': number, 'minimumRatio?': number }),
)

const waits = { averageWaitS: number, maximumWaitS: number, averageBoundedSlowdown: number }

export const queue = output(
  'simulate-queue',
  '`muster simulate queue --json`',
  line('simulation', 'The queue.', {
    jobs: count,
    ...waits,
    cpuPercent: number,
    gpuPercent: number,
    impossible: count,
    preempted: count,
    averageWaitByUserS: map(number),
  }),
)

export const swf = output(
  'simulate-swf',
  '`muster simulate swf --json`',
  line('simulation', 'A policy.', {
    policy: text,
    submitScale: number,
    jobs: count,
    tooWide: count,
    ...waits,
    utilisationPercent: number,
  }),
)
