/** Host sets beside the ClusterShell that is installed here. Its own tests are compared by scripts/compare/nodesets.ts. */
import { describe, expect, it } from 'vitest'
import { expandHostSet } from '../../src/inventory/host-set.ts'
import { runOrThrow } from '../lab/cluster/run.ts'
import { requirement } from '../support/requirements.ts'
import { seededRandom } from '../support/seeded-random.ts'

const EXPRESSIONS = 2_000
const ASK = `import json, sys
from ClusterShell.NodeSet import NodeSet
for line in sys.stdin:
    print(json.dumps(sorted(NodeSet(json.loads(line), resolver=None))))`

describe.skipIf(!requirement('python ClusterShell'))('host sets', () => {
  it('name the same hosts as node sets do', async () => {
    const random = seededRandom()
    const below = (most: number): number => Math.floor(random() * most)
    const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
    const range = (): string => {
      const start = below(12)
      const end = start + below(8)
      const pad = (number: number) => (start < 10 && isPadded ? String(number).padStart(2, '0') : String(number))
      const isPadded = random() < 0.3
      return random() < 0.3 ? pad(start) : `${pad(start)}-${pad(end)}${random() < 0.2 ? `/${1 + below(3)}` : ''}`
    }
    const numbers = (): string => `[${Array.from({ length: 1 + below(3) }, range).join(',')}]`
    const name = (): string =>
      oneOf([
        () => oneOf(['m', 'gpu']) + numbers(),
        () => `m${below(12)}`,
        () => `r${numbers()}n${numbers()}`,
        () => `m${numbers()}.lan`,
      ])()
    const expressions = Array.from({ length: EXPRESSIONS }, () => {
      let text = name()
      for (let more = below(4); more > 0; more -= 1) text += oneOf([',', ',', '!', '&', '^']) + name()
      return text
    })
    const asked = await runOrThrow(['/usr/bin/python3', '-c', ASK], {
      stdin: expressions.map((text) => `${JSON.stringify(text)}\n`).join(''),
    })
    const answers: readonly string[][] = asked
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(answers).toHaveLength(EXPRESSIONS)
    for (const [index, text] of expressions.entries())
      expect([...new Set(expandHostSet(text, {}))].sort(), text).toEqual(answers[index])
  })
})
