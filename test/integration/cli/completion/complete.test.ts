/** What Tab offers at each place of a command line, from the table of verbs, hosts.yaml and the queue. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readBashLine } from '../../../../src/cli/completion/shells.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { runMuster } from '../../../support/run-muster.ts'

const HOSTS = `
hosts: { m8: {}, m9: {}, gpu01: {} }
groups: { workers: [m8, m9], gpus: [gpu01] }
`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-complete-'))
  writeFileSync(join(directory, 'hosts.yaml'), HOSTS)
})
afterEach(() => rmSync(directory, { recursive: true }))

/** `kind: word word`, without descriptions. */
async function offered(...words: readonly string[]): Promise<string> {
  const { exitCode, output, messages } = await runMuster(['--complete', 'zsh', ...words], { directory })
  expect([exitCode, messages]).toEqual([0, ''])
  const [kind = '', ...lines] = output.trimEnd().split('\n')
  return [`${kind}:`, ...lines.map((line) => line.split('\t')[0])].join(' ')
}

describe('verbs', () => {
  it('are offered with descriptions, and so are those of a group', async () => {
    const { output } = await runMuster(['--complete', 'zsh', 'ru'], { directory })
    expect(output).toBe('words\nrun\trun a command on every host of the target\n')
    expect(await offered('job', 'ca')).toBe('words: cancel')
  })

  it('are offered after help, and hosts are not', async () => {
    expect(await offered('help', 'g')).toBe('words:')
    expect(await offered('help', 'job', 'rele')).toBe('words: release')
    expect(await offered('job', 'hel')).toBe('words: help')
  })

  it('do not include hidden ones', async () => {
    expect(await offered('keep')).toBe('files:')
  })
})

describe('options', () => {
  it('are those of the verb, and the shared ones that it takes', async () => {
    expect(await offered('run', 'm8', '--di')).toBe('words: --diff')
    expect(await offered('run', 'm8', '--fan')).toBe('words: --fan-out')
    expect(await offered('pack', '--fold')).toBe('words:')
    expect(await offered('--keep')).toBe('words: --keep')
  })

  it('are those of a launcher of hosts.yaml, and none inside the command of the user', async () => {
    expect(await offered('launch', 'accelerate', '--bund')).toBe('words: --bundles')
    expect(await offered('launch', 'accelerate', 'train.py', '--bund')).toBe('files:')
    expect(await offered('run', 'm8', 'diff', '--di')).toBe('files:')
  })

  it('offer their choices as values, in both notations', async () => {
    expect(await offered('run', '--color', 'a')).toBe('words: auto always')
    expect(await offered('run', '--color=n')).toBe('words: --color=never')
  })

  it('offer the names that their verb knows, in a list those that are not in it yet', async () => {
    expect(await offered('job', 'submit', '--strategy', 'S')).toBe('words: SPREAD STRICT_PACK STRICT_SPREAD')
    expect(await offered('job', 'submit', '--engine=k')).toBe('words: --engine=k8s')
    expect(await offered('job', 'list', '--state', 'failed,')).toContain(' failed,running')
    expect(await offered('job', 'list', '--state', 'failed,f')).toBe('words:')
    expect(await offered('simulate', 'fleet', '--policy=le')).toBe('open: --policy=least-stranding')
  })

  it('offer launchers with the rows of hosts.yaml, and the methods of a study', async () => {
    expect(await offered('job', 'submit', '--launch', 't')).toBe('words: torchrun tf')
    writeFileSync(join(directory, 'hosts.yaml'), `${HOSTS}\nlaunchers: { tune: { command: [tune] } }\n`)
    expect(await offered('job', 'submit', '--launch=t')).toBe('words: --launch=torchrun --launch=tf --launch=tune')
    expect(await offered('launch', 'check', 'tu')).toBe('words: tune')
    expect(await offered('launch', 't')).toBe('words: torchrun tf tune')
    expect(await offered('launch', 'row', '')).toBe('words: tune')
    rmSync(join(directory, 'hosts.yaml'))
    expect(await offered('job', 'submit', '--launch', 'mp')).toBe('words: mpi')
    expect(await offered('study', 'create', 's', '--method', 't')).toBe('words: tpe')
  })

  it('offer the formats of an import, and files where no format fits', async () => {
    expect(await offered('import', 'cl')).toBe('words: clush clusterssh')
    expect(await offered('import', 'inv')).toBe('files:')
    expect(await offered('import', 'ssh', '')).toBe('files:')
  })

  it('offer the schemas', async () => {
    expect(await offered('schema', 'job-l')).toBe('words: job-list job-logs')
  })

  it('offer the fields of the JSON, one after the other', async () => {
    expect(await offered('job', 'wait', '--json=')).toBe('open: --json=version --json=type --json=job --json=state')
    expect(await offered('job', 'wait', '--json=job,s')).toBe('open: --json=job,state')
    expect(await offered('completion', '--json=')).toBe('words:')
  })

  it('end at --, where the command for the hosts begins', async () => {
    expect(await offered('run', 'm8', '--', '--di')).toBe('files:')
    expect(await offered('run', 'm8', '--', 'ls', 'm')).toBe('files:')
  })
})

describe('hosts', () => {
  it('complete the last name of a host set, which may continue', async () => {
    expect(await offered('run', 'm')).toBe('open: m8 m9')
    expect(await offered('run', 'm8,@')).toBe('open: m8,@workers m8,@gpus')
    expect(await offered('run', 'all!g')).toBe('open: all!gpu01')
    expect(await offered('run', 'm[8')).toBe('words:')
    expect(await offered('job', 'submit', '--on=@w')).toBe('open: --on=@workers')
  })

  it('are offered without a verb, and so are files', async () => {
    expect(await offered('m8', 'm')).toBe('open: m8 m9')
    expect(await offered('gp')).toBe('open: gpu01')
    expect(await offered('./la')).toBe('files:')
  })

  it('come from the file that --hosts names', async () => {
    writeFileSync(join(directory, 'other.yaml'), 'hosts: { n1: {} }\n')
    expect(await offered('--hosts', 'other.yaml', 'run', 'n')).toBe('open: n1')
    expect(await offered('run', '--hosts=other.yaml', 'm')).toBe('words:')
    expect(await offered('--hosts', 'oth')).toBe('files:')
  })

  it('are single ones where a verb takes no set', async () => {
    expect(await offered('net', 'pair', 'm8', 'g')).toBe('words: gpu01')
  })

  it('are not offered, without an error, if hosts.yaml is wrong', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: [')
    expect(await offered('run', 'm')).toBe('words:')
    expect(await offered('ru')).toBe('words: run')
  })

  it('may have names in any language', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { größe: {}, 机器-1: {} }\n')
    expect(await offered('run', 'gr')).toBe('open: größe')
    expect(await offered('run', '机')).toBe('open: 机器-1')
  })

  it('are left out if a shell would act on their names', async () => {
    writeFileSync(
      join(directory, 'hosts.yaml'),
      'hosts: { m1: {} }\ngroups: { "a;b": [m1], "a$(c)": [m1], ab: [m1] }\n',
    )
    expect(await offered('run', '@a')).not.toMatch(/[;$]/)
  })

  it('are the names in ssh_config without a hosts.yaml', async () => {
    rmSync(join(directory, 'hosts.yaml'))
    mkdirSync(join(directory, '.ssh'))
    writeFileSync(join(directory, '.ssh/config'), 'Host n1 n2\nHost github.com\nHost *\n')
    expect(await offered('run', 'n')).toBe('open: n1 n2')
    expect(await offered('run', 'n1,')).toBe('open: n1,n1 n1,n2')
    expect(await offered('net', 'pair', 'g')).toBe('words:')
  })
})

describe('jobs and studies', () => {
  it('come from the queue, newest first, with state and name', async () => {
    for (const name of ['fit', 'eval']) await runMuster(['job', 'submit', '--name', name, '--', 'true'], { directory })
    const { output } = await runMuster(['--complete', 'fish', 'job', 'cancel', ''], { directory })
    expect(output).toBe('words\n2\tqueued: eval\n1\tqueued: fit\n')
    expect(await offered('job', 'cancel', '1,')).toBe('words: 1,2')
    expect(await offered('job', 'submit', '--after', '2,')).toBe('words: 2,1')
    expect(await offered('job', 'submit', '--after=7,1-2,')).toBe('words:')
    expect(await offered('ray', 'stop', '')).toBe('words:')
  })

  it('are those that the verb changes', async () => {
    for (const _ of [1, 2, 3]) await runMuster(['job', 'submit', '--', 'true'], { directory })
    await runMuster(['job', 'cancel', '2'], { directory })
    await runMuster(['job', 'hold', '1'], { directory })
    expect(await offered('job', 'cancel', '')).toBe('words: 3 1')
    expect(await offered('job', 'hold', '')).toBe('words: 3')
    expect(await offered('job', 'release', '')).toBe('words: 1')
    expect(await offered('job', 'retry', '')).toBe('words: 2')
    expect(await offered('job', 'requeue', '')).toBe('words:')
    expect(await offered('job', 'wait', '')).toBe('words: 3 1')
    expect(await offered('job', 'show', '')).toBe('words: 3 1 2')
  })

  it('are all that run or wait, however old, and the last to end', async () => {
    await runMuster(['job', 'submit', '--array', '1-60', '--', 'true'], { directory })
    await runMuster(['job', 'hold', '2'], { directory })
    {
      using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'default.db'))
      applyEvent(store, 1, { kind: 'placed', places: [{ host: 'm8', devices: [] }] }, 1)
      for (let id = 60; id >= 4; id -= 1) applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, 100 - id)
    }
    for (const verb of ['show', 'logs', 'ranks']) {
      const [, ...found] = (await offered('job', verb, '')).split(' ')
      expect(found).toEqual(['1', '3', '2', ...Array.from({ length: 50 }, (_, index) => String(53 - index))])
    }
  })

  it('do not create a queue', async () => {
    expect(await offered('study', 'show', '')).toBe('words:')
    expect(existsSync(join(directory, '.local/state/muster/jobs'))).toBe(false)
  })
})

describe('a line of bash', () => {
  const BREAKS = ' \t\n"\'@><=;|&(:'

  it('is split into words as in bash', () => {
    expect(readBashLine(`muster run 'all!m8' -- echo "a b" c\\ d x`, BREAKS).words).toEqual([
      'run',
      'all!m8',
      '--',
      'echo',
      'a b',
      'c d',
      'x',
    ])
    expect(readBashLine('muster run ', BREAKS)).toEqual({ words: ['run', ''], cut: 0, isQuoted: false })
  })

  it('keeps what is before the last break or before the quote', () => {
    expect(readBashLine('muster run m8,@w', BREAKS)).toMatchObject({ words: ['run', 'm8,@w'], cut: 3 })
    expect(readBashLine('muster x --color=a', BREAKS).cut).toBe(8)
    expect(readBashLine("muster run 'm8,@w", BREAKS)).toEqual({ words: ['run', 'm8,@w'], cut: 0, isQuoted: true })
  })

  it('gets candidates that it does not act on: what was typed with a backslash keeps it', async () => {
    const offer = async (line: string) => {
      const { output } = await runMuster(['--complete', 'bash', line, BREAKS], { directory })
      return output.trimEnd().split('\n').slice(1)
    }
    expect(await offer('muster run all\\&g')).toEqual(['all\\&gpu01'])
    expect(await offer('muster run all\\!\\(g')).toEqual(['all\\!\\(gpu01'])
    expect(await offer("muster run 'all&g")).toEqual(['all&gpu01'])
    expect(await offer('muster run m')).toEqual(['m8', 'm9'])
  })
})
