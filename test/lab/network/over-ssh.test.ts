/** `muster net mesh --tool ssh` on links of known speed, before and after the hosts can log in to each other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { type Mesh, startMesh } from '../trust/mesh.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'ssh', 'ssh-keygen')

type Event = { readonly type: string; readonly [key: string]: unknown }

const MBIT = 200

describe.skipIf(!canRun)('muster net mesh over ssh', { timeout: 400_000 }, () => {
  let mesh: Mesh
  const measure = async () => {
    const { stdout } = await mesh.muster('net', 'mesh', '--tool', 'ssh', '--time', '1', '--json')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
    return {
      links: events.filter(({ type }) => type === 'link'),
      findings: events.filter(({ type }) => type === 'finding').map(({ id, text }) => `${id}: ${text}`),
    }
  }

  beforeAll(async () => {
    mesh = await startMesh({ count: 3 })
    for (const host of mesh.lab.hosts) await host.shape({ bitsPerSecond: MBIT * 1e6 })
  })
  afterAll(async () => await mesh?.lab.stop())

  it('names the command that lets hosts log in to each other', async () => {
    const { links, findings } = await measure()
    expect(new Set(links.map(({ outcome }) => outcome))).toEqual(new Set(['no-tool']))
    for (const text of findings) expect(text).toContain('Run: muster up trust')
  })

  it('reports the speed of each link, or that its runs were useless, and blames no host', async () => {
    const { code, stderr } = await mesh.muster('up', 'trust', '--yes')
    expect([code, stderr]).toEqual([0, ''])
    const { links, findings } = await measure()
    expect(links).toHaveLength(6)
    for (const { from, to, outcome, bitsPerSecond } of links) {
      if (outcome === 'unsteady') continue
      expect({ from, to, outcome, isRight: Math.abs(Number(bitsPerSecond) / (MBIT * 1e6) - 1) < 0.25 }).toEqual({
        from,
        to,
        outcome: 'measured',
        isRight: true,
      })
    }
    expect(findings.filter((text) => /^(?:slow|asymmetric)/.test(text))).toEqual([])
  })
})
