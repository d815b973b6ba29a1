/** Errors while Ink draws: what is drawn instead, and that it draws again. */
import { Box, render, Text, Transform } from 'ink'
import type { ReactNode } from 'react'
import { afterEach, expect, it } from 'vitest'
import { textOfCells } from '../../../../src/terminal/cell-row.ts'
import { FaultBoundary } from '../../../../src/ui/components/fault-boundary.tsx'
import { createVirtualStdin, VirtualStdout } from '../../../../src/ui/tty/virtual-terminal.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const opened: Disposable[] = []
afterEach(() => {
  for (const one of opened.splice(0).reverse()) one[Symbol.dispose]()
})

function openDrawing() {
  const clock = new ManualClock()
  const stdout = new VirtualStdout({ columns: 20, rows: 2, onDraw: () => {} })
  const faults: string[] = []
  let version = 0
  const tree = (children: ReactNode) => (
    <FaultBoundary
      version={version++}
      instead={<Text>cannot be drawn</Text>}
      clock={clock}
      onFault={(error) => void faults.push(String(error))}
    >
      {children}
    </FaultBoundary>
  )
  const ink = render(tree(<Text>first</Text>), {
    stdout: stdout.stream,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
  })
  opened.push(stdout, { [Symbol.dispose]: () => ink.unmount() })
  return {
    faults,
    draw(children: ReactNode) {
      ink.rerender(tree(children))
      clock.advance(100)
    },
    shows: (text: string) =>
      waitUntil(() => textOfCells(stdout.grid.words, 0, 20).trimEnd() === text, `the row “${text}”`),
  }
}

const explode = (): string => {
  throw new Error('planted')
}
const Unprintable = () => (
  <Transform transform={explode}>
    <Text>words</Text>
  </Transform>
)
const Immeasurable = () => (
  <Box>
    <Text>
      <Transform transform={explode}>words</Transform>
    </Text>
  </Box>
)

it.each([
  ['printed', <Unprintable key="" />],
  ['laid out', <Immeasurable key="" />],
])('draws something else for what cannot be %s, then the next version', async (_, bad) => {
  const { draw, shows, faults } = openDrawing()
  await shows('first')
  draw(bad)
  await shows('cannot be drawn')
  expect(new Set(faults)).toEqual(new Set(['Error: planted']))
  draw(<Text>next</Text>)
  await shows('next')
})

it('draws after any number of faults', async () => {
  const { draw, shows } = openDrawing()
  for (let count = 0; count < 200; count++) draw(<Immeasurable />)
  draw(<Text>next</Text>)
  await shows('next')
})
