/** How a test opens the console: the program, the place where it runs, and its environment. */
import { dirname, join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..', '..')
/** The command line of this checkout's program: as it is installed where `npm test` has built that, otherwise of its sources. What it prints with --json is checked. */
export const PROGRAM: readonly string[] = [
  process.execPath,
  ...(process.env.MUSTER_TEST_PROGRAM === undefined
    ? ['--import', join(ROOT, 'node_modules', 'tsx', 'dist', 'esm', 'index.mjs')]
    : []),
  ...['--import', join(import.meta.dirname, 'check-json-output.mjs')],
  process.env.MUSTER_TEST_PROGRAM ?? join(ROOT, 'src', 'main.ts'),
]

/** Where a console runs: a lab, or anything else that wraps a command line and has an environment. */
export type Place = {
  command(argv: readonly string[]): readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
}

export type ConsoleOptions = {
  /** Columns and rows; 120 × 40 unless given. */
  readonly size?: readonly [number, number]
  readonly args?: readonly string[]
  readonly in?: Place
  readonly environment?: Readonly<Record<string, string>>
  /** This checkout unless given. */
  readonly directory?: string
  /** Instead of this checkout's program. */
  readonly program?: readonly string[]
  /** The mode in which the program is taken to be open; false: do not wait for any. */
  readonly until?: string | false
}

/**
 * Only what a program needs of the tester's own environment, and CI's variable, which must change nothing.
 * In the tester's own home the program writes nothing.
 */
export function environmentOf(options: ConsoleOptions, socketPath: string): Record<string, string> {
  const { PATH, HOME, CI } = process.env
  const given = { ...options.in?.environment, ...options.environment }
  const merged: Record<string, string | undefined> = {
    PATH,
    HOME,
    CI,
    LANG: 'C.UTF-8',
    COLORTERM: 'truecolor',
    ...(given.HOME === undefined ? { XDG_STATE_HOME: join(dirname(socketPath), 'state') } : {}),
    ...given,
    MUSTER_OBSERVER: socketPath,
  }
  return Object.fromEntries(Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
