/**
 * `npm run bench -- thousand`: a thousand hosts on two cores. One sshd answers for all addresses, for Muster and its peers alike.
 * The servers need most of the time.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../support/requirements.ts'
import { type Contender, createContenders, type Task } from '../run/contenders.ts'
import { ControlGroup } from '../run/control-group.ts'
import { startHosts } from '../run/hosts.ts'
import { measurePart, type RunBenchOptions } from '../run/run.ts'
import { buildProduct } from '../support/build.ts'
import { benchConsole } from './console.ts'

const COUNT = 1000
const FAN_OUT = 64
const PROGRAMS = ['sshd', 'ip', 'unshare', 'pdsh', 'pdcp', 'clush']

export async function benchThousand(options: RunBenchOptions): Promise<string> {
  const missing = PROGRAMS.filter((name) => findProgram(name) === undefined)
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(', ')}`)
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  try {
    await using owned = new AsyncDisposableStack()
    const build = await buildProduct(directory, options.root)
    const contenders = createContenders(directory, build, options.nodeArguments)
    const group = owned.use(new ControlGroup(`muster-bench-${process.pid}-servers`))
    const { names, listeners } = owned.use(await startHosts(directory, { count: COUNT, group, isOneServer: true }))
    const { muster, pdsh, clush } = contenders
    const echo: Task = { hosts: names, command: 'echo BENCHOK', fanOut: FAN_OUT, mark: 'BENCHOK' }
    const check: Task = { ...echo, mark: 'yes, ' }
    const copy: Task = { ...echo, mark: 'COPIED' }
    const parts = [
      {
        name: 'run',
        title: `${COUNT} hosts, ${FAN_OUT} at once, \`echo\``,
        contenders: [muster(), pdsh(), clush()],
        task: echo,
      },
      { name: 'check', title: `${COUNT} hosts: \`hosts --check\``, contenders: [checkHosts(muster())], task: check },
      { name: 'copy', title: `64 KiB to each of ${COUNT} hosts`, contenders: copies(muster(), directory), task: copy },
      ...[1, COUNT].map((count) => ({
        name: 'memory',
        title: `${count === 1 ? '1 host' : `${count} hosts`}: memory`,
        contenders: [muster()],
        task: { ...echo, hosts: names.slice(0, count) },
        isMemory: true,
      })),
    ]
    const tables: string[] = []
    const isWanted = (name: string) => options.parts === undefined || options.parts.includes(name)
    for (const part of parts) {
      if (!isWanted(part.name)) continue
      tables.push(await Promise.race([measurePart(part, directory, options, 1), options.interrupted]))
    }
    if (isWanted('console'))
      tables.push(
        await Promise.race([benchConsole({ directory, build, names, listeners, ...options }), options.interrupted]),
      )
    return tables.join('\n\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function checkHosts(muster: Contender): Contender {
  const words = (task: Task) => {
    const given = muster.words(task)
    const at = given.indexOf('run')
    return [...given.slice(0, at), 'hosts', '--check', '--fan-out', String(task.fanOut), given[at + 1] ?? '']
  }
  return { ...muster, name: 'muster hosts --check', words }
}

/** All hosts have the same directories. Only Muster needs a file for each host, because it never overwrites one with another. */
function copies(muster: Contender, directory: string): readonly Contender[] {
  const file = join(directory, 'file')
  const target = join(directory, 'copied')
  writeFileSync(file, Buffer.alloc(64 * 1024, 'x'))
  const contender = (name: string, copy: (task: Task, set: string) => readonly string[]): Contender => ({
    name,
    isFolded: true,
    ...(muster.environment ? { environment: { ...muster.environment, PDSH_RCMD_TYPE: 'ssh' } } : {}),
    forget() {
      rmSync(target, { recursive: true, force: true })
      mkdirSync(target)
    },
    words: (task) => {
      const set = muster.words(task)[muster.words(task).indexOf('run') + 1] ?? ''
      return ['/bin/sh', '-c', '"$@" && echo COPIED', 'sh', ...copy(task, set)]
    },
  })
  return [
    contender('muster copy', (task, set) => {
      const given = muster.words(task)
      const program = given.slice(0, given.indexOf('run'))
      return [...program, 'copy', '--fan-out', String(task.fanOut), set, file, `${target}/%h`]
    }),
    contender('pdcp', ({ fanOut }, set) => ['pdcp', '-f', String(fanOut), '-w', set, file, target]),
    contender('clush --copy', ({ fanOut }, set) => [
      'clush',
      '-f',
      String(fanOut),
      '-w',
      set,
      '--copy',
      file,
      '--dest',
      `${target}/`,
    ]),
  ]
}
