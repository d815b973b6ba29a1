import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linesByHand } from '../../../../src/scheduler/launch/by-hand.ts'
import { ditask } from '../../../../src/scheduler/launch/ditask.ts'
import { horovod } from '../../../../src/scheduler/launch/horovod.ts'
import type { LaunchedGang, Launcher } from '../../../../src/scheduler/launch/launcher.ts'
import { mpi } from '../../../../src/scheduler/launch/mpi.ts'
import { rowLauncher } from '../../../../src/scheduler/launch/rows.ts'
import { tf } from '../../../../src/scheduler/launch/tf.ts'
import { torchrun } from '../../../../src/scheduler/launch/torchrun.ts'
import { vllm } from '../../../../src/scheduler/launch/vllm.ts'

const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }

function linesOf(
  launcher: Launcher,
  options: Readonly<Record<string, string>>,
  command: string,
  hosts: readonly string[],
) {
  const shape = launcher.shape(options, hosts.length, request)
  const own = shape.roles[0]?.request ?? request
  const gang: LaunchedGang = {
    id: '17.1',
    command,
    environment: { SEED: '7' },
    spec: { kind: launcher.name, options, ports: [46_000, 46_999] },
    bundles: hosts.map((host, index) => ({
      role: 'host',
      index,
      host,
      address: host.replace('m', '10.0.0.'),
      devices: Array.from({ length: own.gpuCount }, (_, device) => device),
      request: own,
      ranks: shape.ranks ?? 1,
      said: {},
      hasBegun: false,
    })),
  }
  return linesByHand(launcher, gang).map(({ host, command: line }) => `${host}: ${line}`)
}

describe('the lines to start a job without Muster', () => {
  it('are those of vLLM itself, without what tells that it is ready', () => {
    const common = '--tensor-parallel-size 4 --pipeline-parallel-size 2 --nnodes 2'
    expect(linesOf(vllm, { tp: '4', pp: '2' }, 'MODEL', ['m1', 'm2'])).toEqual([
      `m1: CUDA_VISIBLE_DEVICES=0,1,2,3 VLLM_HOST_IP=10.0.0.1 SEED=7 vllm serve MODEL ${common} --node-rank 0 --master-addr 10.0.0.1 --master-port 46001 --host 10.0.0.1 --port 46000`,
      `m2: CUDA_VISIBLE_DEVICES=0,1,2,3 VLLM_HOST_IP=10.0.0.2 SEED=7 vllm serve MODEL ${common} --node-rank 1 --master-addr 10.0.0.1 --master-port 46001 --headless`,
    ])
  })

  it('are one for each worker of DI-engine, with ports that differ on one host', () => {
    expect(linesOf(ditask, { workers: '2' }, '--main cartpole.main', ['m1', 'm1'])).toEqual(
      [46_000, 46_001, 46_016, 46_017].map(
        (port, rank) =>
          `m1: SEED=7 ditask --parallel-workers 1 --node-ids ${rank} --address 10.0.0.1 --ports ${port} --topology alone ${rank === 0 ? '' : '--attach-to tcp://10.0.0.1:46000 '}--main cartpole.main`,
      ),
    )
  })

  it('give a line of sh to sh on each rank, and leave plain words as they are', () => {
    const text = 'echo "$SEED"; hostname'
    const inShell = `sh -c 'echo "$SEED"; hostname'`
    const ofPython = `sh -c 'python3 train.py | tee "$SEED"'`
    for (const [launcher, options] of [
      [mpi, {}],
      [mpi, { mpi: 'mpich' }],
      [horovod, { controller: 'gloo' }],
      [torchrun, {}],
    ] as const) {
      expect(linesOf(launcher, options, text, ['m1'])).toEqual([
        expect.stringMatching(/ sh -c 'echo "\$SEED"; hostname'$/),
      ])
      expect(linesOf(launcher, options, 'python3 train.py --lr 0.1', ['m1'])).toEqual([
        expect.stringMatching(/[^'] python3 train\.py --lr 0\.1$/),
      ])
      expect(linesOf(launcher, options, text, ['m1'])[0]).toMatch(/SEED[= ]7/)
    }
    const piped = 'train.py | tee "$SEED"'
    expect(linesOf(torchrun, {}, text, ['m1'])[0]).toContain(` --no_python ${inShell}`)
    expect(linesOf(torchrun, {}, piped, ['m1'])[0]).toContain(` --no_python ${ofPython}`)
    expect(linesOf(torchrun, {}, 'train.py --lr 0.1', ['m1'])[0]).toMatch(/ --master_port 46000 train\.py --lr 0\.1$/)
    expect(linesOf(tf, {}, text, ['m1'])[0]).toContain(` SEED=7 ${inShell}`)
    expect(linesOf(tf, {}, piped, ['m1'])[0]).toContain(` SEED=7 ${ofPython}`)
    for (const word of [
      'FOO=1 ./a',
      'a && b',
      'a | b',
      'a >b',
      'ls *',
      "a 'b c'",
      'cd x',
      'exit 3',
      'type a',
      'a ~',
      'a {b,c}',
      'a\nb',
    ])
      expect(linesOf(mpi, {}, word, ['m1'])[0]).toMatch(/ sh -c '/)
  })

  it('start, in a shell, what the shell of a bundle starts', () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    for (const name of ['accelerate', 'vllm', 'ditask']) {
      const program = `#!/bin/sh\nprintf '<%s>' ${name} "$SEED" "$@"\n`
      writeFileSync(join(directory, name), program, { mode: 0o755 })
    }
    const env = { ...process.env, PATH: `${directory}${delimiter}${process.env.PATH}` }
    const typed = (line = '') => {
      const { status, stdout, stderr } = spawnSync('sh', ['-c', line.replace(/^m1: /, '')], { env, encoding: 'utf8' })
      expect([status, stderr]).toEqual([0, ''])
      return stdout
    }
    const row = (command: readonly string[]) =>
      rowLauncher('row', { command, per: 'bundle', ports: 0, environment: {}, done: 'all' })
    const own = row(['accelerate', 'a b', '{nodes}'])
    expect(typed(linesOf(own, {}, 'train.py --lr 1', ['m1'])[0])).toBe('<accelerate><7><a b><1><train.py><--lr><1>')
    // The variables of the job are there when the command is read.
    expect(typed(linesOf(own, {}, 'train.py "$SEED" \'c d\'', ['m1'])[0])).toBe(
      '<accelerate><7><a b><1><train.py><7><c d>',
    )
    expect(typed(linesOf(row([]), {}, 'cd / && echo "$SEED"; pwd', ['m1'])[0])).toBe('7\n/\n')
    expect(linesOf(own, {}, 'train.py', ['m1'])[0]).toBe("m1: SEED=7 accelerate 'a b' 1 train.py")
    expect(typed(linesOf(vllm, {}, '"$SEED"/model', ['m1'])[0])).toContain(
      '<vllm><7><serve><7/model><--tensor-parallel-size>',
    )
    expect(typed(linesOf(ditask, {}, '--main "$SEED"', ['m1'])[0])).toMatch(
      /^<ditask><7><--parallel-workers>.*<--main><7>$/,
    )
  })
})
