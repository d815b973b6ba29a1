/** What a host of the queue says of itself. */
import { describe, expect, it } from 'vitest'
import { parseHostAnswer } from '../../../../src/scheduler/jobs/host-program.ts'
import { formatLeft } from '../../../../src/scheduler/jobs/left-running.ts'

it('takes only cores and memory that a machine can have from a host', () => {
  expect(parseHostAnswer('host 8 1024').facts).toEqual({ cores: 8, memoryBytes: 2 ** 20 })
  for (const number of ['-1', '1e309', 'NaN', '8x', '18446744073709551616', '9'.repeat(400)])
    expect(parseHostAnswer(`host ${number} ${number}`).facts).toEqual({ cores: 0, memoryBytes: 0 })
})

it('takes only a plausible number of GPUs from a host; anything else limits nothing', () => {
  expect(parseHostAnswer('host 8 1024 1').facts).toEqual({ cores: 8, memoryBytes: 2 ** 20, gpus: 1 })
  // A host cannot have so many that sums of them overflow.
  expect(parseHostAnswer('host 999999999 -5').facts).toEqual({ cores: 0, memoryBytes: 0 })
  for (const word of ['', '0', '-1', '1e3', '01', '8x', '1000', '9'.repeat(400)])
    expect(parseHostAnswer(`host 8 1024 ${word}`).facts).not.toHaveProperty('gpus')
})

describe('what a host says is left of a launched bundle', () => {
  const leftOf = (words: string) => {
    const bundle = parseHostAnswer(`k ${words}`).bundles.get('k')
    return bundle?.kind === 'ended' ? bundle.left : undefined
  }

  it('is nothing, or processes with their names, of which a host names at most 8', () => {
    expect(leftOf('exit 0 at=1 to=2 left=0 boot=b')).toEqual({ count: 0, processes: [] })
    expect(leftOf('gone left=0')).toEqual({ count: 0, processes: [] })
    const processes = [
      { pid: 117, name: 'python3' },
      { pid: 118, name: 'pt_main' },
    ]
    expect(leftOf('exit 137 memory at=1 to=2 left=12,117:python3,118:pt_main')).toEqual({ count: 12, processes })
  })

  it('is unknown in any other form, and of a bundle that has not ended', () => {
    const nine = Array.from({ length: 9 }, (_, index) => `,${index}:x`).join('')
    for (const word of [
      '',
      'left=',
      'left=x',
      'left=-1',
      'left=99999999',
      'left=1,2:a;b',
      'left=1,2:',
      `left=9${nine}`,
    ])
      expect(leftOf(`exit 0 at=1 to=2 ${word}`)).toBeUndefined()
    expect(leftOf(`exit 0 left=1,2:${'x'.repeat(65)}`)).toBeUndefined()
    expect(parseHostAnswer('k begun left=0').bundles.get('k')).not.toHaveProperty('left')
  })

  it('reads as one sentence for all hosts that are clean, and one for each other', () => {
    const bundle = (host: string, left: string | undefined, hasBegun = true) => ({
      ...{ host, hasBegun, left: left === undefined ? undefined : leftOf(`exit 0 left=${left}`) },
    })
    expect(formatLeft([bundle('m1', '0'), bundle('m2', '0'), bundle('m1', '0')])).toEqual(['nothing left on m1 m2'])
    expect(formatLeft([bundle('m1', undefined, false), bundle('m2', '0')])).toEqual(['nothing left on m1 m2'])
    expect(
      formatLeft([bundle('m1', '0'), bundle('m2', '3,7:sh,8:nvcc'), bundle('m3', undefined), bundle('m1', '1,9:x')]),
    ).toEqual([
      'left on m1: x (pid 9)',
      'left on m2: sh (pid 7), nvcc (pid 8) and 1 more',
      'could not check what is left on m3',
    ])
  })
})
