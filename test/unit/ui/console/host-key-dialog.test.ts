/** New host keys: what is to be compared is shown whole on every screen. */
import { expect, it } from 'vitest'
import type { NewHostKey } from '../../../../src/ssh/questions.ts'
import { layoutDialog } from '../../../../src/ui/components/layout-dialog.ts'
import { hostKeyDialog } from '../../../../src/ui/dialogs/credential-dialog.ts'

const FINGERPRINT = `SHA256:${'KmSdwdY1ZQMbRtOXBT3tRL+CmYTarlRvHrBakx0123w'}`
const COMMAND = 'ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub'

const keyOf = (host: string, algorithm = 'ssh-ed25519'): NewHostKey => ({
  host,
  lookupName: `[10.81.0.${host.length}]:2222`,
  algorithm,
  fingerprint: FINGERPRINT,
})

function open(keys: readonly NewHostKey[], columns: number, rows: number) {
  const accepted: ReadonlySet<string>[] = []
  const dialog = hostKeyDialog(keys, (hosts) => accepted.push(hosts))({ onClose() {}, onChange() {} })
  const title = () => dialog.view({ columns, rows }).title
  const body = () => layoutDialog(dialog.view({ columns, rows }), columns, rows).body
  /** As far as they are drawn. */
  const lines = () =>
    body().map(({ text, right = '' }) => {
      const room = Math.min(110, columns - 2) - 4 - (right === '' ? 0 : right.length + 3)
      return `${text.slice(0, room)} ${right}`.trimEnd()
    })
  return { dialog, accepted, lines, body, title }
}

it.each([
  [80, 24],
  [120, 40],
  [60, 20],
])('new host keys are shown whole on %i×%i, in the order of their names, with the command to compare', (columns, rows) => {
  const keys = ['m2', 'm10', 'm1'].map((host) => keyOf(host))
  const { lines } = open(keys, columns, rows)
  const text = lines().join('\n')
  expect(text).toContain(FINGERPRINT)
  expect(text.replaceAll('\n', ' ')).toContain(COMMAND)
  expect(text).toContain('[10.81.0.2]:2222')
  const names = lines().flatMap((line) => /^\[x\] (\S+)/.exec(line)?.[1] ?? [])
  expect(names).toEqual(['m1', 'm2', 'm10'])
})

it('of long names and algorithms the fingerprint is left whole on 80 columns', () => {
  const host = 'a-host-with-a-very-long-name-indeed.example.org'
  const { lines } = open([keyOf(host, 'ecdsa-sha2-nistp256'), keyOf('m2')], 80, 24)
  expect(lines().filter((line) => line.startsWith('[x]') && line.includes(FINGERPRINT))).toHaveLength(2)
  expect(lines().join(' ')).toContain('ecdsa-sha2-nistp256')
})

it.each([
  [40, 12],
  [40, 10],
  [40, 18],
  [60, 14],
])('on %i×%i the fingerprint of the selected key is shown whole, and how many keys are not shown', (columns, rows) => {
  const keys = ['m1', 'm2', 'm3', 'm4', 'm5'].map((host) => keyOf(host))
  const { dialog, lines, title } = open(keys, columns, rows)
  const isDown = title().includes('↓')
  const more = () => [...title().matchAll(/[↑↓] (\d+) more/g)].reduce((sum, [, count]) => sum + Number(count), 0)
  for (const host of ['m1', 'm2', 'm3', 'm4', 'm5']) {
    expect(lines().join('')).toContain(FINGERPRINT)
    const shown = lines().flatMap((line) => /^\[x\] (\S+)/.exec(line)?.[1] ?? [])
    expect(shown).toContain(host)
    expect(shown.length + more()).toBe(5)
    dialog.key('Down', {} as never)
  }
  expect(title().includes('↑')).toBe(isDown)
})

it('a click on a key toggles it, and one on the text around does nothing', () => {
  const keys = Array.from({ length: 30 }, (_, index) => keyOf(`m${index + 1}`))
  const { dialog, body, lines } = open(keys, 80, 24)
  for (const { at, text } of body()) if (!text.startsWith('[')) dialog.pick?.(at)
  expect(lines().filter((line) => line.startsWith('[ ]'))).toEqual([])
  const third = body().find(({ text }) => text.startsWith('[x] m3 '))
  dialog.pick?.(third?.at ?? 0)
  expect(lines().filter((line) => line.startsWith('[ ]'))).toEqual([expect.stringContaining('m3 ')])
})
