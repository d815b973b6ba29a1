import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { writerOf } from '../../../../src/cli/kubernetes/logs.ts'

it('prints the output of a pod with visible control characters, also into a pipe', () => {
  for (const isTTY of [false, true]) {
    const stdout = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY })
    const write = writerOf('p', {}, { stdout, stderr: new PassThrough() })
    const bytes = Buffer.from('a\tb\x1b]52;c;RVZJTA==\x07\r\né\n')
    write(bytes.subarray(0, -2))
    write(bytes.subarray(-2))
    write(undefined)
    expect(stdout.read()).toBe('a\tb\\x1b]52;c;RVZJTA==\\x07\\x0d\né\n')
  }
})
