/**
 * Loaded into each `muster` that a test starts as a process (`PROGRAM`): with --json, a line that is not as its schema says is
 * followed by one that is no JSON and says why, so that the test which reads it fails.
 */
const args = process.argv.slice(2)
if (args.includes('--json')) {
  const { jsonChecker, jsonVerbOf } = await import('./json-output.ts')
  const found = jsonVerbOf(args)
  if (found?.verb.output !== undefined) watchStdout(await jsonChecker(found))
}

/** Longer lines, the output of commands, are not checked. */
const MOST_CHARACTERS = 2 ** 24

function watchStdout(check) {
  const { stdout } = process
  const write = stdout.write.bind(stdout)
  let rest = ''
  let isTooLong = false
  stdout.write = (chunk, ...more) => {
    const isTaken = write(chunk, ...more)
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    const lines = text.split('\n')
    rest += lines.shift()
    for (const next of lines) {
      const problem = isTooLong ? undefined : check(rest)
      if (problem !== undefined) write(`${problem}\n`)
      rest = next
      isTooLong = false
    }
    if (rest.length > MOST_CHARACTERS) {
      rest = ''
      isTooLong = true
    }
    return isTaken
  }
}
