/** The words of a line as Python's `shlex.split` has them, which Ansible and others read their files with. */
export function splitShellWords(line: string, hasComments = false): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? ''
    if (quote !== '') {
      const next = line[at + 1] ?? ''
      if (letter === quote) quote = ''
      else if (letter === '\\' && quote === '"' && (next === '"' || next === '\\')) {
        word += next
        at += 1
      } else word += letter
    } else if (letter === '"' || letter === "'") {
      quote = letter
      word ??= ''
    } else if (letter === '\\') {
      at += 1
      if (at === line.length) return undefined
      word = (word ?? '') + line[at]
    } else if (hasComments && letter === '#') break
    else if (/[ \t\r\n]/.test(letter)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + letter
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}
