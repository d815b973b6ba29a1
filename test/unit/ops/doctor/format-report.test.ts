import { describe, expect, test } from 'vitest'
import { formatFindings, formatSummary } from '../../../../src/ops/doctor/report.ts'
import type { Finding } from '../../../../src/ops/kernel/finding.ts'

const ORDER = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']
const note = (host: string, changes: Partial<Finding> = {}): Finding => ({
  host,
  gravity: 'note',
  id: 'load',
  cause: 'busy',
  ...changes,
})

describe('the report', () => {
  test('has the gravest first, and one line for the hosts with the same finding', () => {
    const fix = { where: 'host', command: 'du -x /' } as const
    const findings: Finding[] = [
      note('m3'),
      note('m1', { gravity: 'risk', id: 'x', cause: 'a risk', hint: 'Take care.' }),
      note('m4', { gravity: 'blocker', id: 'disk-full', cause: '/ is full', fix }),
      note('m2'),
      note('m2', { gravity: 'blocker', id: 'disk-full', cause: '/ is full', fix }),
    ]
    expect(formatFindings(findings, ORDER)).toBe(
      [
        'blocker  m[2,4]: / is full',
        '           on m[2,4]: du -x /',
        'risk     m1: a risk',
        '           Take care.',
        'note     m[2-3]: busy',
        '',
      ].join('\n'),
    )
  })

  test('shows no command without the condition in its hint', () => {
    const fix = { where: 'here', command: 'ssh-keygen -R m1' } as const
    const hint = 'If the machine is new, forget the old key with: ssh-keygen -R m1'
    expect(formatFindings([note('m1', { fix, hint })], ORDER)).toBe(`note     m1: busy\n           ${hint}\n`)
    expect(formatFindings([note('m1', { fix })], ORDER)).toBe('note     m1: busy\n           here: ssh-keygen -R m1\n')
  })

  test('shows equal details once, and at most four different ones by host', () => {
    const same = ORDER.map((host) => note(host, { detail: 'load 3' }))
    expect(formatFindings(same, ORDER)).toBe('note     m[1-6]: busy [load 3]\n')
    const different = ORDER.map((host, index) => note(host, { detail: `load ${index}` }))
    expect(formatFindings(different, ORDER)).toBe(
      'note     m[1-6]: busy [m1 load 0; m2 load 1; m3 load 2; m4 load 3; 2 more]\n',
    )
  })

  test('shows control characters of a host as text', () => {
    const text = formatFindings([note('m1', { detail: '\u001b[31m\u202e\nblocker  m2: fake' })], ORDER)
    expect(text).toBe('note     m1: busy [\\x1b[31m\\u202e\\x0ablocker  m2: fake]\n')
  })

  test('ends with the number of hosts in each state', () => {
    expect(formatSummary({ well: 1, risk: 0, blocked: 0, unreachable: 0 })).toBe('1 host: 1 ok\n')
    expect(formatSummary({ well: 6, risk: 1, blocked: 2, unreachable: 3 })).toBe(
      '12 hosts: 6 ok, 1 at risk, 2 blocked, 3 not reached\n',
    )
  })
})
