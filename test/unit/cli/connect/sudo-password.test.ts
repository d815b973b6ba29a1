import { describe, expect, it } from 'vitest'
import { Secret } from '../../../../src/base/secret.ts'
import { SudoPassword } from '../../../../src/cli/connect/tty-dialog.ts'
import type { ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'

const HOSTS = ['m1', 'm2']
const resultOf = (outcome: RunOutcome): ScriptResult => ({
  outcome,
  stdout: new Uint8Array(),
  stderr: new Uint8Array(),
  durationMs: 1,
})

function setUp(...answers: readonly (Secret | undefined)[]) {
  const titles: string[] = []
  const sudo = new SudoPassword({
    async ask({ title }) {
      titles.push(title)
      const answer = answers[titles.length - 1]
      return answer === undefined ? undefined : [answer]
    },
  })
  return { sudo, titles }
}

describe('the password of sudo', () => {
  it('is asked once for all hosts, also when another operation begins', async () => {
    const password = new Secret('correct horse')
    const { sudo, titles } = setUp(password)
    sudo.begin(HOSTS)
    expect(await Promise.all([sudo.ask(), sudo.ask()])).toEqual([password, password])
    sudo.begin(HOSTS)
    expect(await sudo.ask()).toBe(password)
    expect(titles).toEqual(['sudo on m[1-2]'])
  })

  it('is asked again by the next operation, but not by another host, if it was not given', async () => {
    const { sudo, titles } = setUp(undefined, new Secret('correct horse'))
    sudo.begin(HOSTS)
    expect([await sudo.ask(), await sudo.ask(), titles.length]).toEqual([undefined, undefined, 1])
    sudo.begin(HOSTS)
    expect((await sudo.ask()) !== undefined).toBe(true)
    expect(titles).toHaveLength(2)
  })

  it('is asked again by the next operation if a host did not accept it', async () => {
    const { sudo, titles } = setUp(new Secret('wrong'), new Secret('correct horse'))
    const hosts = sudo.watch({
      exec: async () => resultOf({ kind: 'refused', reason: 'sudo did not accept the password' }),
    })
    const options = { timeoutMs: 1, signal: new AbortController().signal }
    sudo.begin(HOSTS)
    await sudo.ask()
    await hosts.exec('m1', 'true', options)
    sudo.begin(HOSTS)
    await sudo.ask()
    expect(titles).toHaveLength(1)
    await hosts.exec('m1', 'true', { ...options, asRoot: true })
    sudo.begin(HOSTS)
    await sudo.ask()
    expect(titles).toHaveLength(2)
  })

  it('does not keep files from hosts that can be brought some', async () => {
    class Hosts {
      readonly #done = resultOf({ kind: 'exit', code: 0 })
      exec = async () => this.#done
      async deliver() {
        return this.#done
      }
    }
    const { sudo } = setUp()
    const options = { signal: new AbortController().signal, together: 1 }
    const delivery = { from: undefined, path: '/x', kind: 'directory', to: '/y' } as const
    const delivered = await sudo.watch(new Hosts()).deliver?.('m1', delivery, options)
    expect(delivered?.outcome).toEqual({ kind: 'exit', code: 0 })
    expect(sudo.watch({ exec: async () => resultOf({ kind: 'cancelled' }) }).deliver).toBeUndefined()
  })
})
