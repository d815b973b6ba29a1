import { expect, test } from 'vitest'
import { formatHosts } from '../../../../src/cli/pack/host-table.ts'

const host = {
  name: 'gpu01',
  devices: [[{ job: 7, milli: 500 }], [], [], []],
  ...{ cpuMilli: 64_000, cpuUsedMilli: 32_000, memoryBytes: 2 ** 39, memoryUsedBytes: 2 ** 38 },
  ...{ jobs: [7], holdings: [], strandedMilli: 0 },
}
const lineOn = (columns: number, trouble = '') =>
  formatHosts('HOST', [{ host, trouble }], { isTTY: true, columns }, new Map([[7, 'A']])).split('\n')[1]

test('boxes and bars are as long as the terminal has room for', () => {
  const whole =
    'gpu01  [AAAA····] [········] [········] [········]  ██████······ 32/64  ██████······ 256 GiB / 512 GiB  A'
  expect([lineOn(0), lineOn(whole.length + 1), lineOn(whole.length)]).toEqual([
    whole,
    whole,
    'gpu01  [AA··] [····] [····] [····]  ███··· 32/64  ███··· 256 GiB / 512 GiB  A',
  ])
  expect(lineOn(72)).toBe('gpu01  [A·] [··] [··] [··]  32/64  256 GiB / 512 GiB  A')
})

test('why a host cannot be used has room before them', () => {
  expect(lineOn(80, 'connection refused')).toBe(
    'gpu01  [A·] [··] [··] [··]  32/64  256 GiB / 512 GiB  A   connection refused',
  )
})
