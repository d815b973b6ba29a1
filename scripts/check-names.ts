/**
 * Two rules about names that no linter has, over the text of src/: an exported type's name stands for one thing, and no method
 * is there for tests alone. knip (`--production`) finds files and exports of that kind, not members.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** Called by JavaScript itself, by React, by the script that writes man pages, or by tests of embedded hosts. */
const CALLED_ELSEWHERE = new Set([
  ...['constructor', 'toJSON', 'toString', 'connectionCount', 'helpOf'],
  ...[
    'getDerivedStateFromError',
    'getDerivedStateFromProps',
    'componentDidCatch',
    'componentDidMount',
    'componentWillUnmount',
  ],
])

export type Sources = ReadonlyMap<string, string>

/** One sentence for each name that two files export as a type. */
export function doubleTypes(sources: Sources): string[] {
  const places = new Map<string, string[]>()
  for (const [file, text] of sources) {
    for (const [, name = ''] of text.matchAll(/^export (?:abstract )?(?:type|interface|class) (\w+)/gm))
      places.set(name, [...(places.get(name) ?? []), file])
  }
  return [...places]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => `${name} is exported as a type by ${files.join(' and ')}`)
}

/** One sentence for each method of a class or an interface that nothing in these files names again. */
export function unusedMembers(sources: Sources): string[] {
  const code = new Map([...sources].map(([file, text]) => [file, text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '')]))
  const used = new Set<string>()
  for (const text of code.values()) {
    for (const [name] of text.matchAll(/(?<=\.#?)[A-Za-z_$][\w$]*/g)) used.add(name)
    // Taken apart, handed over, or filled in by name: `{ name }`, `name,`.
    for (const [name] of text.matchAll(/(?<![.\w#])[A-Za-z_$][\w$]*(?=\s*[,}=)])/g)) used.add(name)
  }
  const findings = new Map<string, string>()
  for (const [file, text] of code) {
    for (const [, name = ''] of text.matchAll(
      /^ {2}(?:static |async |get |set |readonly |override |\*)*([a-z]\w*)\??(?:<[^>\n]*>)?\((?:.*(?<!=> )\{|.*\): [^=\n]+)$/gm,
    )) {
      if (!used.has(name) && !CALLED_ELSEWHERE.has(name) && !/^(?:if|for|while|switch|catch)$/.test(name))
        findings.set(name, `${file}: nothing but tests calls ${name}`)
    }
  }
  return [...findings.values()]
}

function readSources(): Sources {
  return new Map(
    readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => [`src/${name}`, readFileSync(join(ROOT, 'src', name), 'utf8')]),
  )
}

if (import.meta.main) {
  const sources = readSources()
  const problems = [...doubleTypes(sources), ...unusedMembers(sources)]
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
