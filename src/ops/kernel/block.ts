/**
 * Lines of Muster in a file that others write, too: a block between two comment lines. Every other byte of the file stays as it
 * is, and removing the block restores the file. Pure; a character represents a byte.
 */

const OPEN = '# >>> muster '
const CLOSE = '# <<< muster '
/** Noted in the first line of the block, so that removing it can restore the file. */
const NEW_FILE = ' (in a file of its own)'
const CUT_LINE = ' (after a line without an end)'

/** The lines of the block, or undefined if there is none. */
export function blockOf(text: string, name: string): readonly string[] | undefined {
  return findBlock(text, name)?.lines
}

/** The text with the block: in its place if there is one, otherwise at the top or bottom. Undefined: there is no file yet. */
export function withBlock(
  text: string | undefined,
  name: string,
  lines: readonly string[],
  place: 'top' | 'bottom',
): string {
  const { before, after, words } = findBlock(text ?? '', name) ?? placeOf(text, place)
  const block = [openingOf(name, words), ...lines, closingOf(name), '']
  return `${before}${block.join('\n')}${after}`
}

/** The text without the block; undefined: the file was created for it, and has no other content. */
export function withoutBlock(text: string, name: string): string | undefined {
  const found = findBlock(text, name)
  if (found === undefined) return text
  const rest = `${found.words === CUT_LINE ? found.before.replace(/\n$/, '') : found.before}${found.after}`
  return found.words === NEW_FILE && rest === '' ? undefined : rest
}

/**
 * Undefined: every block of this name has both of its comment lines. Otherwise one is missing (`lost`), so it is not known which
 * lines above or below the other one (`there`) are ours.
 */
export function brokenBlock(
  text: string,
  name: string,
): { readonly lost: string; readonly there: string; readonly isFirstLost: boolean } | undefined {
  const [first, last] = [openingOf(name, ''), closingOf(name)]
  let isOpen = false
  for (const line of text.split('\n')) {
    if (line === last && !isOpen) return { lost: first, there: last, isFirstLost: true }
    if (isOpening(line, name) && isOpen) break
    if (line === last || isOpening(line, name)) isOpen = !isOpen
  }
  return isOpen ? { lost: last, there: first, isFirstLost: false } : undefined
}

const openingOf = (name: string, words: string): string => `${OPEN}${name}${words}: changes here are lost >>>`

const closingOf = (name: string): string => `${CLOSE}${name} <<<`

const isOpening = (line: string, name: string): boolean =>
  line.startsWith(`${OPEN}${name}:`) || line.startsWith(`${OPEN}${name} (`)

function placeOf(text: string | undefined, place: 'top' | 'bottom') {
  if (text === undefined) return { before: '', after: '', words: NEW_FILE }
  if (place === 'top') return { before: '', after: text, words: '' }
  const isCut = text !== '' && !text.endsWith('\n')
  return { before: isCut ? `${text}\n` : text, after: '', words: isCut ? CUT_LINE : '' }
}

type Block = {
  readonly before: string
  readonly after: string
  readonly words: string
  readonly lines: readonly string[]
}

function findBlock(text: string, name: string): Block | undefined {
  const lines = text.split('\n')
  const first = lines.findIndex((line) => isOpening(line, name))
  if (first < 0) return undefined
  const last = lines.indexOf(closingOf(name), first)
  // If the last line was removed, only the first is certainly ours.
  const end = last < 0 ? first : last
  return {
    before: lines
      .slice(0, first)
      .map((line) => `${line}\n`)
      .join(''),
    after: lines.slice(end + 1).join('\n'),
    words: [NEW_FILE, CUT_LINE].find((words) => lines[first]?.includes(words)) ?? '',
    lines: lines.slice(first + 1, end),
  }
}

/** The lines of a file that change, as those of a diff, without blank lines and Muster's own comments. */
export function changedLines(before: string, after: string): string[] {
  const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !/^# (Made by )?Muster\b/.test(line))
  const [old, now] = [lines(before), lines(after)]
  return [
    ...old.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
    ...now.filter((line) => !old.includes(line) && !line.startsWith('#')).map((line) => `+ ${line}`),
  ]
}
