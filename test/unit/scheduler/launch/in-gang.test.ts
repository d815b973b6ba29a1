import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { FAIL, needs } from '../../../../src/scheduler/launch/in-gang.ts'

it.each([
  ['n1,n2,n3', '1', 'n2'],
  ['n1', '0', 'n1'],
  ['', '0', 'this bundle'],
])('names the host of the bundle that lacks a program: of %s, rank %s', (hosts, rank, own) => {
  const env = { PATH: '/usr/bin:/bin', MUSTER_HOSTS: hosts, RANK: rank }
  const { status, stderr } = spawnSync('/bin/sh', ['-c', `${FAIL}${needs("no'such")}`], { env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([127, `muster: ${own} has no no'such in PATH\n`])
})
