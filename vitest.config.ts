import { defineConfig } from 'vitest/config'

/** These tests replace modules that the others load, too. */
const ALONE = [
  'test/unit/cli/console/console-ray.test.ts',
  'test/unit/terminal/xterm-internals.test.ts',
  'test/unit/ui/compositor/frame-encoder.test.ts',
]

const SETUP = ['test/support/fewer-runs.ts']

export default defineConfig({
  test: {
    // Groups run one after the other: vitest refuses projects with different numbers of workers in one group.
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.{ts,tsx}'],
          exclude: ALONE,
          setupFiles: SETUP,
          testTimeout: 60_000,
          maxWorkers: 2,
          // A world of its own for each file takes longer than the tests.
          isolate: false,
        },
      },
      {
        test: {
          name: 'unit-isolated',
          include: ALONE,
          setupFiles: SETUP,
          testTimeout: 60_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.{ts,tsx}'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'lab',
          include: ['test/lab/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // They wait for other programs most of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'heavy',
          include: ['test/heavy/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // Each of them fills the memory and both cores of a small machine.
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
