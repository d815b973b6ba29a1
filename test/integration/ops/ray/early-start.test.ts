/** The start of a worker that waits for its turn, with a program in place of Ray that prints what it does. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { earlyStartScript } from '../../../../src/ops/ray/node-scripts.ts'
import type { RayNode } from '../../../../src/ops/ray/wanted.ts'
import { findProgram, requirement } from '../../../support/requirements.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { rayWanted } from '../../../unit/ops/ray/ray-wanted.ts'

const MODULE = `import os
def tell(word):
    with open(os.environ["TOLD"], "a") as file: file.write(word + "\\n")
tell("loaded")
def main():
    import sys
    tell("started " + " ".join(sys.argv[1:3]) + ", stdin " + repr(sys.stdin.read()))
    print("Ray runtime started.")
`

/** `program`: what stands in bin/ray; it and bin/python are in the directory. */
function startedEarly(program: (directory: string) => string) {
  const directory = mkdtempSync(join(tmpdir(), 'muster-ray-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const told = join(directory, 'told')
  mkdirSync(join(directory, 'bin'))
  mkdirSync(join(directory, 'lib/ray/scripts'), { recursive: true })
  writeFileSync(join(directory, 'lib/ray/scripts/scripts.py'), MODULE)
  symlinkSync(findProgram('python3') ?? '', join(directory, 'bin/python'))
  writeFileSync(join(directory, 'bin/ray'), program(directory))
  chmodSync(join(directory, 'bin/ray'), 0o755)
  const node = (host: string, isHead: boolean): RayNode => ({
    host,
    isHead,
    address: host,
    custom: {},
    labels: {},
    environment: { kind: 'venv', path: directory, python: 'python3', from: host, hosts: [host] },
  })
  const wanted = rayWanted({ head: node('m10', true), workers: [node('m8', false)] })
  const script = earlyStartScript(wanted, node('m8', false), '10.81.0.2', '10.81.0.1') ?? ''
  const child = spawn('/bin/sh', ['-c', script], {
    env: { PATH: process.env.PATH, HOME: directory, TOLD: told, PYTHONPATH: join(directory, 'lib') },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      printed += bytes.toString()
    })
  }
  const ended = once(child, 'close')
  return {
    stdin: child.stdin,
    told: () => (existsSync(told) ? readFileSync(told, 'utf8') : ''),
    end: async () => {
      const [code] = await ended
      return { code: Number(code), printed }
    },
  }
}

const python = (directory: string) => `#!${directory}/bin/python
import sys
from ray.scripts.scripts import main
if __name__ == "__main__": sys.exit(main())
`
const STARTED = "started start --address=10.81.0.1:6333, stdin ''\n"

describe.skipIf(!requirement('python3'))('a worker that waits for its head', () => {
  it('has loaded Ray when its turn comes, and starts then', async () => {
    const { stdin, told, end } = startedEarly(python)
    await waitUntil(() => told() === 'loaded\n', 'Ray to be loaded')
    stdin.write('\n')
    expect(await end()).toEqual({ code: 0, printed: 'Ray runtime started.\n' })
    expect(told()).toBe(`loaded\n${STARTED}`)
  })

  it('ends without having started if its turn does not come', async () => {
    const { stdin, told, end } = startedEarly(python)
    await waitUntil(() => told() === 'loaded\n', 'Ray to be loaded')
    stdin.end()
    expect((await end()).code).toBe(1)
    expect(told()).toBe('loaded\n')
  })

  it('reports in its turn what cannot be loaded', async () => {
    const { stdin, end } = startedEarly((directory) => {
      writeFileSync(join(directory, 'lib/ray/scripts/scripts.py'), 'raise RuntimeError("half of it is missing")\n')
      return python(directory)
    })
    stdin.write('\n')
    const { code, printed } = await end()
    expect(code).toBe(1)
    expect(printed).toContain('RuntimeError: half of it is missing')
  })

  it('loads nothing if ray is no Python program, and starts in its turn', async () => {
    const shell = () => '#!/bin/sh\nprintf "started %s %s, stdin \'%s\'\\n" "$1" "$2" "$(cat)" >> "$TOLD"\n'
    const first = startedEarly(shell)
    first.stdin.end()
    expect((await first.end()).code).toBe(1)
    expect(first.told()).toBe('')

    const second = startedEarly(shell)
    second.stdin.write('\n')
    expect((await second.end()).code).toBe(0)
    expect(second.told()).toBe(STARTED)
  })
})
