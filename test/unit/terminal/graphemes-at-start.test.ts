import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const GRAPHEMES = fileURLToPath(new URL('../../../src/terminal/graphemes.ts', import.meta.url))

it('reads the width tables whole, also after a small allocation', () => {
  const program = `
    const { poolSize: pool, from } = Buffer;
    Buffer.from = (...given) => {
      if (given[1] === 'base64') while (Buffer.allocUnsafe(16).fill(0).byteOffset !== 0);
      return from.apply(Buffer, given);
    };
    const { installGraphemes } = await import(${JSON.stringify(GRAPHEMES)});
    const unicode = { register(tables) { this.tables = tables } };
    installGraphemes({ unicode });
    console.log(Buffer.poolSize === pool, unicode.tables.wcwidth(0x4e2d), unicode.tables.wcwidth(0x301));`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { encoding: 'utf8' },
  )
  expect([stdout, stderr]).toEqual(['true 2 0\n', ''])
})
