import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'

const MODULE = join(import.meta.dirname, '../../../src/base/small-heap.ts')

/** In a separate process, because it cannot be undone: 400 MB in pieces that nothing keeps, and the peak memory. */
const PROGRAM = `
const { keepHeapSmall } = await import(${JSON.stringify(MODULE)})
const heap = keepHeapSmall()
let most = 0
for (let index = 0; index < 6400; index += 1) {
  const piece = Buffer.alloc(65536, index)
  heap.passed(piece.length)
  most = Math.max(most, process.memoryUsage().arrayBuffers)
}
console.log(most / 2 ** 20)
`

// On Linux, Node itself reads /proc for this.
it.skipIf(process.platform === 'linux' && !requirement('/proc'))(
  'frees passed data before the heap is full',
  { timeout: 120_000 },
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', PROGRAM])
    expect(Number(stdout)).toBeGreaterThan(0)
    expect(Number(stdout)).toBeLessThan(40)
  },
)
