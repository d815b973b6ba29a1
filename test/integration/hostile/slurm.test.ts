/** A login host of a Slurm cluster that lies, or that is full or broken: to the queue, to dry runs and to `muster pack`. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { OpsHosts } from '../../../src/ops/kernel/host-port.ts'
import { openSlurm } from '../../../src/ops/slurm/job-engine.ts'
import { reportOf, SQUEUE_FORMAT } from '../../../src/ops/slurm/queue.ts'
import { slurmScript } from '../../../src/ops/slurm/script.ts'
import { enginePicture } from '../../../src/ui/packing/engine-picture.ts'
import { hostileHosts, resultOf } from '../../support/hostile-host/hostile-hosts.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'

const signal = new AbortController().signal
const SLURM = openSlurm({ login: 'c1', coreMemoryBytes: 0, options: [] })
const KEYS = ['abc-1-1-0', 'abc-2-1-0', 'abc-3-1-0']
const FOREIGN = [
  'abc-9-1-0',
  'claim abc-9-1-0 1',
  'end',
  'trouble \x1b]0;x\x07',
  'end abc-9-1-0 exit 0',
  'Nodes=n[1-99999]',
]

const specOf = (command: string) => ({
  ...{ name: 'x', command, bundles: 1, strategy: 'PACK' },
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
})

/** As squeue writes it. */
function line(...cells: readonly string[]): string {
  const widths = SQUEUE_FORMAT.split(',').map((column) => Number(column.split('.')[1]))
  return widths.map((width, index) => (cells[index] ?? '').padStart(width)).join('')
}

function login(good: string, choice: Choice, note: (...how: readonly string[]) => void) {
  return hostileHosts((_, __, options) => {
    const answer = mutate(Buffer.from(good), choice, FOREIGN)
    note(...answer.how)
    return resultOf(answer, { stdout: Buffer.alloc(0) }, options)
  })
}

function expectPlain(text: string, what: string): void {
  expectPrintable(text, what)
  expectNoDefect(text, what)
}

describe('a hostile login host of Slurm', () => {
  it('affects only the jobs that it was asked about, and prints nothing that acts', async () => {
    const good = [
      line('7', 'RUNNING', '0', 'None', '1795416669', 'n1', KEYS[0] as string),
      line('8', 'PENDING', '0', 'Resources', '1795416999', '', KEYS[1] as string),
      `claim ${KEYS[0]} 7`,
      `end ${KEYS[2]} exit 3 RUNNING 5:00`,
      `refused ${KEYS[1]} sbatch: error: Invalid account`,
      'end\n',
    ].join('\n')
    await playMutations(async ({ choice, note }) => {
      const orders = KEYS.map((key) => ({ kind: 'check', key }) as const)
      const { trouble = '', reports, waits } = await SLURM.round(orders, login(good, choice, note), signal)
      expectPlain(trouble, 'the trouble')
      for (const [key, report] of reports) {
        if (!KEYS.includes(key)) throw new Error(`it spoke about ${key}`)
        if (typeof report === 'object' && 'reason' in report) expectPlain(report.reason, 'the reason')
        if (typeof report === 'object' && report.kind === 'exit' && !(report.code >= 0 && report.code <= 255))
          throw new Error(`the exit code is ${report.code}`)
      }
      for (const { why, startS = 0 } of waits?.values() ?? []) {
        expectPlain(why, 'why it waits')
        new Date(startS * 1000).toISOString()
      }
    })
  })

  it('is drawn as far as its answer makes sense', async () => {
    const good = `me 0
NodeName=n1 CPUAlloc=2 CPUTot=4 RealMemory=8000 AllocMem=200 Gres=gpu:a100:2 State=MIXED
NodeName=n2 CPUAlloc=0 CPUTot=4 RealMemory=8000 AllocMem=0 Gres=(null) State=IDLE+DRAIN
job\t7\tRUNNING\t0\troot\tN/A\tNone\tn[1-2]\tabc-1-1-0
job\t8\tPENDING\t1000\tada\t1795416669\tPriority\t\tx
more 0
JobId=7 Nodes=n[1-2] CPU_IDs=0-1 Mem=200 GRES=gpu:a100:1(IDX:0)
end
`
    await playMutations(async ({ choice, note }) => {
      const usage = await SLURM.usage(login(good, choice, note), signal)
      if (typeof usage === 'string') return expectPlain(usage, 'the trouble')
      const text = JSON.stringify([usage, enginePicture(usage, 'Slurm', () => 1)])
      expectPrintable(text, 'the picture')
      if (/:null/.test(text)) throw new Error(`a number is missing: ${text}`)
    })
  })

  it('tells a dry run nothing that acts', async () => {
    const good =
      'code 0\nsbatch: Job 26 to start at 2026-11-23T07:00:00 using 1 processors on nodes n[1-2] in partition main\n'
    await playMutations(async ({ choice, note }) => {
      const trial = await SLURM.tryOut(
        { key: 'abc-0-1-0', environment: {}, priority: 0, spec: specOf('true') },
        login(good, choice, note),
        signal,
      )
      expectPlain('words' in trial ? trial.words : trial.trouble, 'the words')
    }, 0.5)
  })
})

/** A squeue with jobs 1 to `jobs`. `cells`: statements of awk that set a value by the name of its column, of job number i. */
const squeueOf = (jobs: number, cells: string) => `for format; do :; done
awk -v format="$format" 'BEGIN {
  count = split(format, columns, ",")
  for (i = 1; i <= ${jobs}; i++) {
    ${cells}
    for (at = 1; at <= count; at++) { split(columns[at], part, ":."); printf "%" part[2] "s", cell[part[1]] }
    print ""
  }
}'`

describe('a login host with a Slurm that is broken or overloaded', () => {
  /** Programs of sh by name; what the engine asks for runs on this machine, in a directory of its own. */
  async function withLogin(
    programs: Readonly<Record<string, string>>,
    use: (slurm: typeof SLURM, hosts: OpsHosts, directory: string) => Promise<void>,
  ) {
    const directory = mkdtempSync(join(tmpdir(), 'muster-slurm-'))
    try {
      const bin = join(directory, 'bin')
      mkdirSync(bin)
      const all = { sbatch: 'echo 1', squeue: ':', scancel: ':', scontrol: ':', ...programs }
      for (const [name, body] of Object.entries(all)) writeProgram(join(bin, name), body)
      const hosts = hostileHosts((_, script, { stdin = '' }) => {
        const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script], { input: stdin, cwd: directory })
        return {
          outcome: { kind: 'exit', code: status ?? 1 },
          stdout: stdout.subarray(0, 2 ** 20),
          stderr,
          durationMs: 1,
        }
      })
      const jobs = join(directory, 'jobs')
      await use(openSlurm({ login: 'c1', coreMemoryBytes: 0, options: [], bin, directory: jobs }), hosts, jobs)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  it('may remember 10,000 jobs of the queue that have ended', async () => {
    const ended =
      'cell["JobID"] = i; cell["State"] = "COMPLETED"; cell["exit_code"] = 0; cell["Name"] = "abc-" i "-1-0"'
    await withLogin({ squeue: squeueOf(10_000, ended) }, async (slurm, hosts) => {
      const { trouble, reports } = await slurm.round([{ kind: 'check', key: 'abc-9999-1-0' }], hosts, signal)
      expect(trouble).toBeUndefined()
      expect([...reports]).toEqual([['abc-9999-1-0', { kind: 'exit', code: 0 }]])
    })
  })

  it('may run thousands of jobs of the queue', async () => {
    const running =
      'cell["JobID"] = i; cell["State"] = "RUNNING"; cell["exit_code"] = 0; cell["NodeList"] = "n" i; cell["Name"] = "abc-" i "-1-0"'
    await withLogin({ squeue: squeueOf(4000, running) }, async (slurm, hosts) => {
      const orders = Array.from(
        { length: 4000 },
        (_, index) => ({ kind: 'check', key: `abc-${index + 1}-1-0` }) as const,
      )
      const { trouble, reports, nodes } = await slurm.round(orders, hosts, signal)
      expect(trouble).toBeUndefined()
      expect(nodes?.get('abc-4000-1-0')).toBe('n4000')
      expect(new Set(reports.values())).toEqual(new Set(['running']))
      expect(reports.size).toBe(4000)
    })
  })

  it('says why it cannot use the directory of jobs', async () => {
    await withLogin({}, async (slurm, hosts, directory) => {
      writeFileSync(directory, 'a file')
      const { trouble } = await slurm.round([{ kind: 'check', key: KEYS[0] as string }], hosts, signal)
      expect(trouble).toMatch(/^cannot use .*jobs on c1: .*File exists/)
    })
  })

  it('may have 10,000 jobs of other users', async () => {
    const waiting = `cell["JobID"] = i; cell["State"] = i == 9999 ? "RUNNING" : "PENDING"; cell["NodeList"] = i == 9999 ? "n1" : ""
    cell["UserID"] = i == 10000 ? ${process.getuid?.()} : 4294967294; cell["UserName"] = "ada"; cell["Name"] = "job " i`
    const scontrol = `case "$*" in
  *node*) echo NodeName=n1 CPUTot=4 Gres=gpu:2 State=IDLE;;
  *) awk 'BEGIN { for (i = 1; i <= 10000; i++) printf "JobId=%d JobName=x %1500s Nodes=n1 CPU_IDs=0 Mem=5 GRES=gpu:1(IDX:1)\\n", i, "" }';;
esac`
    await withLogin({ squeue: squeueOf(10_000, waiting), scontrol }, async (slurm, hosts) => {
      const usage = await slurm.usage(hosts, signal)
      if (typeof usage === 'string') throw new Error(usage)
      expect(usage.jobs.slice(0, 3).map(({ id, isOwn, shares }) => [id, isOwn, shares])).toEqual([
        ['10000', true, []],
        ['9999', false, [{ node: 'n1', cpuMilli: 1000, memoryBytes: 5 * 2 ** 20, devices: [1] }]],
        ['1', false, []],
      ])
      expect(usage.jobs.length).toBeGreaterThan(2000)
      expect(usage.note).toBe(`${10_000 - usage.jobs.length} more jobs are not shown`)
    })
  })

  it('is not asked once per job while the controller does not answer', async () => {
    const running =
      'cell["JobID"] = i; cell["State"] = "RUNNING"; cell["exit_code"] = 0; cell["Name"] = "abc-" i "-1-0"'
    const away = 'echo call >> ../calls; echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1'
    await withLogin({ squeue: squeueOf(3, running), scancel: away }, async (slurm, hosts, directory) => {
      const orders = KEYS.map((key) => ({ kind: 'stop', key }) as const)
      const { reports } = await slurm.round(orders, hosts, signal)
      expect([...reports.values()]).toEqual(['running', 'running', 'running'])
      expect(readFileSync(join(directory, '..', 'calls'), 'utf8')).toBe('call\n')
    })
  })
})

const canMount = requirement('root', 'namespaces')

describe.skipIf(!canMount)('a job of Slurm in a directory whose disk is full', () => {
  const FILL = 'head -c 1000000 /dev/zero > filler 2>/dev/null'
  /** Runs the script of a job in a file system of 64 KiB; what is in the directory afterwards. */
  function runIn(before: string, command: string) {
    const script = slurmScript(
      { key: KEYS[0] as string, environment: {}, priority: 0, spec: specOf(command) },
      { login: 'c1', coreMemoryBytes: 0, options: [] },
    )
    const directory = mkdtempSync(join(tmpdir(), 'muster-slurm-'))
    try {
      const program = `mount -t tmpfs -o size=64k tmpfs . && cd "$PWD" && cat > script && { ${before}; }
SLURM_JOB_ID=7 SLURMD_NODENAME=n1 HOME=$PWD sh script > /dev/null 2>&1
echo "code $?"
for file in claim end; do if IFS= read -r line < $file; then echo "$file $line"; fi; done 2> /dev/null`
      const { stdout } = spawnSync('unshare', ['--mount', 'sh', '-c', program], {
        input: script,
        cwd: directory,
        encoding: 'utf8',
      })
      return stdout
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  it('is not submitted, and says what to look at', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-slurm-'))
    try {
      const hosts = hostileHosts((_, __, { stdin = '' }) => {
        const programs =
          'for name in sbatch squeue scancel; do printf "#!/bin/sh\\n" > $name; chmod 755 $name; done; mkdir jobs'
        const script = `mount -t tmpfs -o size=64k tmpfs . && cd "$PWD" && ${programs} && { ${FILL}; exec sh -s; }`
        const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script], {
          input: stdin,
          cwd: directory,
        })
        return { outcome: { kind: 'exit', code: 0 }, stdout, stderr, durationMs: 1 }
      })
      const own = { login: 'c1', coreMemoryBytes: 0, options: [], bin: directory, directory: join(directory, 'jobs') }
      const start = {
        kind: 'start',
        key: KEYS[0] as string,
        environment: {},
        priority: 0,
        spec: specOf('true'),
      } as const
      const { trouble, reports, waits } = await openSlurm(own).round([start], hosts, signal)
      expect([trouble, reports.size, waits?.get(start.key)?.why]).toEqual([
        undefined,
        0,
        'cannot write its script on the login host: test its disk and quota with df and quota there',
      ])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  it('notes how it ended all the same', () => {
    expect(runIn('true', `${FILL}; exit 5`)).toBe('code 5\nclaim 7\nend exit 5\n')
  })

  it('does not begin if there is no space to note its end, and is queued again', () => {
    expect(runIn(FILL, 'true')).toBe('code 95\n')
    const failed = { id: '7', state: 'FAILED', status: 95 << 8, reason: 'NonZeroExitCode', nodes: 'n1', name: 'x' }
    expect(reportOf('check', { jobs: [failed], isKnown: true })).toEqual({
      kind: 'unable',
      reason: 'the disk or the quota of its directory is full: check them with df and quota',
    })
  })
})
