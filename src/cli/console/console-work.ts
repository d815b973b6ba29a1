/** Runs and copies of the console, over the connections of its shells. */
import { randomBytes } from 'node:crypto'
import { homedir, tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { expandCommand, expandWord } from '../../ops/run/command-template.ts'
import { bytePathOf } from '../../ssh/copy/byte-path.ts'
import { copyToHosts } from '../../ssh/copy/copy-to-hosts.ts'
import { scanSources } from '../../ssh/copy/source.ts'
import { createFleetTransport } from '../../ssh/create-fleet.ts'
import { createHostExec } from '../../ssh/exec/host-exec.ts'
import type { WorkPort } from '../../ui/work-views/work-port.ts'
import type { CliContext } from '../command-line/context.ts'
import { OutputDirectory } from '../run/exec-files.ts'
import type { ConsoleConnections } from './console-bring-up.ts'

const NOT_HERE = { kind: 'unreachable', reason: 'it was closed in the console' } as const

export function createConsoleWork({ fleet, wires, fanOut, context }: ConsoleConnections): WorkPort {
  const transport = createFleetTransport(fleet)
  const overFleet = { ...wires, transports: { ssh2: transport, openssh: transport, local: transport } }
  const exec = createHostExec({ ...overFleet, clock: systemClock, token: randomBytes(8).toString('hex') })
  const here = (path: string): string => localPath(path, context)
  return {
    fanOut,
    spillDirectory: tmpdir(),
    startCommand(host, command, handlers) {
      const endpoint = fleet.endpoint(host)
      if (endpoint !== undefined) return exec.start(endpoint, { command: expandCommand(command, endpoint) }, handlers)
      queueMicrotask(() => handlers.onEnd(NOT_HERE))
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
    async copy({ hosts, sources, destination, signal, onEvent, onProblems }) {
      const tree = await scanSources(sources.map((source) => bytePathOf(here(source))))
      onProblems(tree.problems.map(({ path, reason }) => `${path}: ${reason}`))
      if (tree.entries.length === 0) throw new MusterError('usage', 'there is nothing to copy')
      await copyToHosts(
        hosts.flatMap((host) => fleet.endpoint(host) ?? []),
        { tree, isDryRun: false, destinationOf: (endpoint) => expandWord(destination, endpoint) },
        { ...overFleet, clock: systemClock, fanOut, signal, onEvent },
      )
      for (const host of hosts) {
        if (fleet.endpoint(host) !== undefined) continue
        const none = { copied: 0, identical: 0, failed: 0, sentBytes: 0, durationMs: 0 }
        onEvent({ type: 'result', host, result: { outcome: 'unreachable', reason: NOT_HERE.reason, ...none } })
      }
    },
    async saveOutput(directory, outputs) {
      const files = new OutputDirectory(here(directory), [...outputs.keys()], false)
      for (const [host, output] of outputs) files.write(host, output)
      return files.path
    },
  }
}

/** A path as a local shell would read it. `site/.` means the contents of `site`: resolve would drop the dot. */
function localPath(path: string, { workingDirectory, environment }: CliContext): string {
  const home = environment.HOME ?? homedir()
  const absolute = resolve(workingDirectory, path.replace(/^~(?=\/|$)/, home))
  return /(^|\/)\.\/*$/.test(path) ? `${absolute}/.` : absolute
}
