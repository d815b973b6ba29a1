/**
 * What a tutorial tells its reader to do and to expect, as steps:
 *
 *   **Press** `Ctrl-]` `/`, **type** `m[1-3]`, **press** `Enter`.
 *
 * A line that begins so is typed. The lines of the next block of `text` are then on the screen: `…` stands for anything, and
 * blanks for any number of them.
 */
import type { ConsoleDriver } from './console-driver.ts'

export type Step =
  | { readonly kind: 'keys'; readonly inputs: readonly Input[] }
  | { readonly kind: 'screen'; readonly lines: readonly string[] }
type Input = { readonly kind: 'press' | 'type'; readonly text: string }

export function readTutorial(markdown: string): Step[] {
  const steps: Step[] = []
  const parts = /^```(\w*)\n([\s\S]*?)^```$|^(\*\*(?:Press|Type)\*\* .*)$/gm
  for (const [, language, block = '', line] of markdown.matchAll(parts)) {
    if (line !== undefined) steps.push({ kind: 'keys', inputs: readInputs(line) })
    else if (language === 'text') steps.push({ kind: 'screen', lines: block.split('\n').filter((each) => each.trim()) })
  }
  return steps
}

/** Types what the step says, or waits until the screen shows what it says. */
export async function follow(console: ConsoleDriver, step: Step): Promise<void> {
  if (step.kind === 'keys') {
    for (const { kind, text } of step.inputs) {
      if (kind === 'type') await console.type(text)
      else await console.key(text === 'Esc' ? 'Escape' : text)
    }
    return
  }
  const missing = () => step.lines.filter((line) => !console.screen().some((row) => patternOf(line).test(row)))
  await console.until(
    () => missing().length === 0,
    () => `the lines of the tutorial:\n${missing().join('\n')}\n`,
  )
}

function readInputs(line: string): Input[] {
  let kind: Input['kind'] = 'press'
  return [...line.matchAll(/\*\*(press|type)\*\*|`([^`]+)`/gi)].flatMap(([, verb, text]) => {
    if (verb !== undefined) kind = verb.toLowerCase() === 'press' ? 'press' : 'type'
    return text === undefined ? [] : [{ kind, text }]
  })
}

function patternOf(line: string): RegExp {
  const parts = line.trim().split(/ *… */)
  const escaped = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replace(/ +/g, ' +'))
  return new RegExp(escaped.join('.*'))
}
