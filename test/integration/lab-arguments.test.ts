/** `npm run lab`: what it says to arguments, before any host is made. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'

const lab = (...args: readonly string[]) => {
  const program = join(packageRoot(), 'test/lab/main.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program, ...args], {
    cwd: packageRoot(),
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

it.each([[['--help']], [['up', '--help']], [['down', '--help']]])('shows its usage: %s', (args) => {
  const { status, stdout, stderr } = lab(...args)
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^usage: npm run lab -- up /)
})

it('names an unknown argument, without a stack trace', () => {
  const { status, stdout, stderr } = lab('up', '--hosts', '3')
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^Unknown option '--hosts'/)
  expect(stderr).toContain('usage: npm run lab -- up ')
  expect(stderr).not.toMatch(/^ +at /m)
})

it('names an unknown part, and those that there are', () => {
  const { status, stdout, stderr } = lab('parts', 'tensorflow', 'pytorch')
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^unknown part: pytorch\n/)
  expect(stderr).toContain('ray-libraries, tensorflow, di-engine, horovod')
})
