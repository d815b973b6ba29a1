import { describe, expect, it } from 'vitest'
import { linesByHand } from '../../../../src/scheduler/launch/by-hand.ts'
import { ditask } from '../../../../src/scheduler/launch/ditask.ts'
import type { LaunchedGang, Launcher } from '../../../../src/scheduler/launch/launcher.ts'
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
})
