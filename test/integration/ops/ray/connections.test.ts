/** The program that tries connections between nodes of Ray, in a Python whose connections have the results that are given. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rayFacts } from '../../../../src/ops/ray/facts.ts'
import type { RayNode } from '../../../../src/ops/ray/wanted.ts'
import { requirement } from '../../../support/requirements.ts'
import { rayWanted } from '../../../unit/ops/ray/ray-wanted.ts'

/** Of each host, by its first attempts; what comes after the last is like it. */
const RESULTS = `import socket
RESULTS = {"m1": ["no route", "open"], "m2": ["no route"], "m3": ["no route", "closed"], "m4": ["no route", "silent"], "m5": ["silent"], "m6": ["open"]}
class Connection:
    def close(self): pass
def connect(place, timeout):
    assert 0 < timeout <= 2
    results = RESULTS[place[0]]
    result = results.pop(0) if len(results) > 1 else results[0]
    if result == "no route": raise OSError(113, "No route to host")
    if result == "closed": raise ConnectionRefusedError()
    if result == "silent": raise socket.timeout()
    return Connection()
socket.create_connection = connect
`

describe.skipIf(!requirement('python3'))('connections between nodes of Ray', () => {
  it('fail for a missing route only if it is still missing at a second attempt', () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-ray-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const python = join(directory, 'bin/python')
    mkdirSync(join(directory, 'bin'))
    writeFileSync(join(directory, 'results.py'), RESULTS)
    writeFileSync(
      python,
      `#!/bin/sh\ncode=$4; shift 4\nexec python3 -I -S -c "$(cat ${directory}/results.py)\n$code" "$@"\n`,
    )
    chmodSync(python, 0o755)
    const node = (host: string): RayNode => ({ host, isHead: host === 'm0', address: host, custom: {}, labels: {} })
    const environment = { kind: 'venv', path: directory, python: 'python3', from: 'm0', hosts: ['m0'] } as const
    const head = { ...node('m0'), environment }
    const wanted = rayWanted({ head, workers: ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'].map(node) })
    const { unreached } = rayFacts(wanted, 'm0')
    const { stdout, stderr } = spawnSync('sh', ['-c', `fact() {\n${unreached.script}\n}\nfact`], { encoding: 'utf8' })
    expect(stderr).toBe('')
    const reasons = unreached.parse(stdout.trimEnd(), Buffer.from(stdout)) ?? new Map()
    expect([...reasons].map(([host, ports]) => [host, ...ports.values()])).toEqual([
      ['m2', 'noroute'],
      ['m3', 'refused'],
      ['m4', 'noroute'],
      ['m5', 'silent'],
    ])
  })
})
