import chalk from 'chalk'
import { Box, type Instance, render, Text } from 'ink'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { textOfCells } from '../../../../src/terminal/cell-row.ts'
import { BOLD, paletteColour, rgbColour, WORDS_PER_CELL } from '../../../../src/terminal/cells.ts'
import { createVirtualStdin, VirtualStdout } from '../../../../src/ui/tty/virtual-terminal.ts'
import { waitUntil } from '../../../support/wait-until.ts'

type Size = readonly [columns: number, rows: number]
const SIZES: readonly Size[] = [
  [80, 24],
  [120, 40],
  [240, 67],
]

const opened: Disposable[] = []

beforeAll(() => {
  chalk.level = 3
})

afterEach(() => {
  for (const one of opened.splice(0).reverse()) one[Symbol.dispose]()
})

function openStdout([columns, rows]: Size): VirtualStdout & { readonly draws: () => number } {
  let draws = 0
  const stdout = new VirtualStdout({ columns, rows, onDraw: () => draws++ })
  opened.push(stdout)
  return Object.defineProperty(stdout, 'draws', { value: () => draws }) as typeof stdout & { draws(): number }
}

function renderOn(stdout: VirtualStdout, node: React.ReactNode): Instance {
  const ink = render(node, {
    stdout: stdout.stream,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
    maxFps: 60,
  })
  opened.push({ [Symbol.dispose]: () => ink.unmount() })
  return ink
}

/** Every cell of the edge is written, so that a scroll or a wrap by one shows. */
function Full({ size: [columns, rows], label }: { readonly size: Size; readonly label: string }) {
  return (
    <Box flexDirection="column" width={columns} height={rows}>
      <Text>{'='.repeat(columns)}</Text>
      <Box flexGrow={1}>
        <Text>{label}</Text>
      </Box>
      <Text>{`${'-'.repeat(columns - 1)}#`}</Text>
    </Box>
  )
}

function fullText([columns, rows]: Size, label: string): string[] {
  const middle = Array.from({ length: rows - 3 }, () => '')
  return ['='.repeat(columns), label, ...middle, `${'-'.repeat(columns - 1)}#`]
}

function textOf({ grid }: VirtualStdout): string[] {
  return Array.from({ length: grid.rows }, (_, row) =>
    textOfCells(grid.words, row * grid.columns * WORDS_PER_CELL, grid.columns),
  )
}

const shows = (stdout: VirtualStdout, lines: readonly string[]) => () =>
  JSON.stringify(textOf(stdout)) === JSON.stringify(lines)

const cell = ({ grid }: VirtualStdout, column: number, row: number): number[] => {
  const at = (row * grid.columns + column) * WORDS_PER_CELL
  return [...grid.words.subarray(at, at + WORDS_PER_CELL)]
}

describe('the terminal that Ink draws on', () => {
  it.each(SIZES)('holds a frame of the whole size, %i×%i, without scrolling by a line', (...size) => {
    const stdout = openStdout(size)
    renderOn(stdout, <Full size={size} label="first" />)
    expect(textOf(stdout)).toEqual(fullText(size, 'first'))
  })

  it.each(SIZES)('holds the following frames at %i×%i in the same place', async (...size) => {
    const stdout = openStdout(size)
    const ink = renderOn(stdout, <Full size={size} label="first" />)
    for (const label of ['second', 'third, and longer', '4']) {
      ink.rerender(<Full size={size} label={label} />)
      await waitUntil(shows(stdout, fullText(size, label)), label)
    }
  })

  it.each(
    SIZES.flatMap((from) => SIZES.filter((to) => to !== from).map((to) => [from, to] as const)),
  )('shows the new tree whole after a resize from %j to %j, also when only one dimension changes', async (from, to) => {
    const stdout = openStdout(from)
    const ink = renderOn(stdout, <Full size={from} label="before" />)
    const steps: Size[] = [[to[0], from[1]], to, [from[0], to[1]], from]
    for (const size of steps) {
      stdout.resize(...size)
      ink.rerender(<Full size={size} label={`at ${size}`} />)
      await waitUntil(shows(stdout, fullText(size, `at ${size}`)), `the frame of ${size}`)
    }
  })

  it('is whole again if the components adopted the new size too late', async () => {
    const stdout = openStdout([120, 40])
    const ink = renderOn(stdout, <Full size={[120, 40]} label="before" />)
    const told = new Promise((resolve) => stdout.stream.once('resize', resolve))
    stdout.resize(80, 24)
    await told
    ink.rerender(<Full size={[80, 24]} label="after" />)
    await waitUntil(shows(stdout, fullText([80, 24], 'after')), 'the new frame')
  })

  it('keeps what Ink does not write again when the terminal becomes wider', async () => {
    const stdout = openStdout([80, 24])
    renderOn(
      stdout,
      <Box height={24}>
        <Text>short</Text>
      </Box>,
    )
    const told = new Promise((resolve) => stdout.stream.once('resize', resolve))
    stdout.resize(120, 24)
    await told
    expect(textOf(stdout)[0]).toBe('short')
    expect(stdout.grid.columns).toBe(120)
  })

  it('reports a resize once, with the last size', async () => {
    const stdout = openStdout([80, 24])
    const told: Size[] = []
    const done = Promise.withResolvers<void>()
    stdout.stream.on('resize', () => {
      told.push([stdout.stream.columns, stdout.stream.rows])
      done.resolve()
    })
    stdout.resize(100, 30)
    stdout.resize(120, 40)
    await done.promise
    expect(told).toEqual([[120, 40]])
  })

  it('reports a frame once, with its cells in the grid', async () => {
    const stdout = openStdout([80, 24])
    const ink = renderOn(stdout, <Full size={[80, 24]} label="one" />)
    await Promise.resolve()
    const before = stdout.draws()
    ink.rerender(<Full size={[80, 24]} label="two" />)
    await waitUntil(shows(stdout, fullText([80, 24], 'two')), 'the second frame')
    await ink.waitUntilRenderFlush()
    expect(stdout.draws()).toBe(before + 1)
  })

  it('has the requested colours and attributes', () => {
    const stdout = openStdout([80, 24])
    renderOn(
      stdout,
      <Text>
        <Text color="#123456" bold>
          a
        </Text>
        <Text backgroundColor="ansi256(200)">b</Text>
        <Text color="red">c</Text>
      </Text>,
    )
    expect(cell(stdout, 0, 0).slice(1)).toEqual([rgbColour(0x123456), 0, BOLD])
    expect(cell(stdout, 1, 0).slice(1)).toEqual([0, paletteColour(200), 0])
    expect(cell(stdout, 2, 0).slice(1)).toEqual([paletteColour(1), 0, 0])
  })

  it('cuts a line that is wider than Ink assumed, and moves no other line', async () => {
    const stdout = openStdout([10, 3])
    stdout.stream.write(`${'x'.repeat(14)}\nsecond`)
    await Promise.resolve()
    expect(textOf(stdout)).toEqual(['xxxxxxxxxx', 'second', ''])
  })

  it('accepts what Ink writes after it was disposed of', () => {
    const stdout = openStdout([80, 24])
    renderOn(stdout, <Full size={[80, 24]} label="last" />)
    stdout[Symbol.dispose]()
    expect(() => stdout.stream.write('x')).not.toThrow()
  })
})

describe('the input of Ink', () => {
  it('is a terminal that never yields anything', () => {
    const stdin = createVirtualStdin()
    expect(stdin.isTTY).toBe(true)
    expect(stdin.setRawMode(true).read()).toBeNull()
  })
})
