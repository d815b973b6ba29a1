/**
 * Proves that the tools hold the rules about imports. A temporary tree gets this repository's biome.json and knip.json; each
 * import that the architecture forbids, a circle, a circle of types, and a file that only a test reaches are planted there and
 * must be found, and each import that it allows must pass.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** What each room of src/ may import (docs/architecture.md). */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  inventory: ['base'],
  ssh: ['base', 'inventory'],
  terminal: ['base', 'inventory'],
  ops: ['base', 'inventory'],
  scheduler: ['base', 'inventory'],
  ui: ['base', 'inventory', 'ssh', 'terminal', 'ops', 'scheduler'],
  cli: ['base', 'inventory', 'ssh', 'terminal', 'ops', 'scheduler'],
}

/** The one room that may import each of these. */
const PACKAGES: Readonly<Record<string, string>> = {
  ssh2: 'ssh',
  'node-pty': 'terminal',
  '@xterm/headless': 'terminal',
  '@xterm/addon-unicode-graphemes': 'terminal',
  ink: 'ui',
  react: 'ui',
}

type Planted = { readonly path: string; readonly text: string; readonly rule: string | undefined }

const RESTRICTED = 'lint/style/noRestrictedImports'

const OTHERS: readonly Planted[] = [
  // Verbs that open a screen import src/ui, others do not.
  { path: 'src/cli/console-imports-ui.ts', text: reexport('../ui/room.ts'), rule: undefined },
  { path: 'src/base/ring-a.ts', text: cycle('a', 'b'), rule: 'lint/suspicious/noImportCycles' },
  { path: 'src/base/ring-b.ts', text: cycle('b', 'a'), rule: 'lint/suspicious/noImportCycles' },
  { path: 'src/base/ring-c.ts', text: typeCycle('c', 'd'), rule: 'lint/suspicious/noImportCycles' },
  { path: 'src/base/ring-d.ts', text: typeCycle('d', 'c'), rule: 'lint/suspicious/noImportCycles' },
  {
    path: 'src/base/floating.ts',
    text: 'async function work(): Promise<void> {}\n\nexport function start(): void {\n  work()\n}\n',
    rule: 'lint/nursery/noFloatingPromises',
  },
  { path: 'src/base/default.ts', text: 'const value = 1\nexport default value\n', rule: 'lint/style/noDefaultExport' },
  { path: 'src/base/kinds.ts', text: 'export enum Kind {\n  one,\n}\n', rule: 'lint/style/noEnum' },
]

/** What the linter let pass or forbade wrongly, one sentence each. */
function lintProblems(directory: string): string[] {
  const planted = [...roomImports(), ...packageImports(), ...OTHERS]
  plant(directory, planted)
  const found = lint(directory)
  return planted.flatMap(({ path, rule }) => verdict(path, rule, found.get(path) ?? []))
}

function roomImports(): Planted[] {
  return pairs(Object.keys(ROOMS), Object.keys(ROOMS))
    .filter(([room, other]) => room !== other)
    .map(([room, other]) => ({
      path: `src/${room}/imports-${other}.ts`,
      text: reexport(`../${other}/room.ts`),
      rule: ROOMS[room]?.includes(other) ? undefined : RESTRICTED,
    }))
}

function packageImports(): Planted[] {
  return pairs(Object.keys(ROOMS), Object.keys(PACKAGES)).map(([room, name]) => ({
    path: `src/${room}/imports-package-${name.replace('@', '').replace('/', '-')}.ts`,
    text: reexport(name),
    rule: PACKAGES[name] === room ? undefined : RESTRICTED,
  }))
}

function plant(directory: string, planted: readonly Planted[]): void {
  for (const room of Object.keys(ROOMS)) {
    mkdirSync(join(directory, 'src', room), { recursive: true })
    writeFileSync(join(directory, 'src', room, 'room.ts'), 'export const room = 1\n')
  }
  for (const { path, text } of planted) writeFileSync(join(directory, path), text)
  for (const file of ['biome.json', 'tsconfig.json', 'package.json']) cpSync(join(ROOT, file), join(directory, file))
}

/** The rules that each file broke. */
function lint(directory: string): Map<string, string[]> {
  const program = join(ROOT, 'node_modules', '.bin', 'biome')
  const options = ['--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', '--diagnostic-level=error']
  const result = spawnSync(process.execPath, [program, 'lint', ...options], { cwd: directory, encoding: 'utf8' })
  const report = JSON.parse(result.stdout) as { diagnostics: { category: string; location: { path: unknown } }[] }
  const found = new Map<string, string[]>()
  for (const { category, location } of report.diagnostics) {
    const path = typeof location.path === 'string' ? location.path : String((location.path as { file?: string })?.file)
    found.set(path, [...(found.get(path) ?? []), category])
  }
  return found
}

function verdict(path: string, rule: string | undefined, found: readonly string[]): string[] {
  if (rule === undefined)
    return found.length === 0 ? [] : [`${path} is allowed, but the linter says ${found.join(', ')}`]
  return found.includes(rule) ? [] : [`${path} breaks ${rule}, and the linter lets it pass`]
}

function pairs(left: readonly string[], right: readonly string[]): [string, string][] {
  return left.flatMap((one) => right.map((other): [string, string] => [one, other]))
}

/** Whether knip lists the file that only a test reaches, and not the one that the program uses. */
function deadCodeProblems(directory: string): string[] {
  const files = {
    'src/main.ts': `${reexport('./base/used.ts')}`,
    'src/base/used.ts': 'export const used = 1\n',
    'src/base/for-tests.ts': 'export const forTests = 1\n',
    'test/unit/for-tests.test.ts': reexport('../../src/base/for-tests.ts'),
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  for (const file of ['knip.json', 'tsconfig.json', 'package.json']) cpSync(join(ROOT, file), join(directory, file))
  const program = join(ROOT, 'node_modules', '.bin', 'knip')
  const options = ['--production', '--reporter=json', '--no-exit-code', '--include=files']
  const { stdout } = spawnSync(process.execPath, [program, ...options], { cwd: directory, encoding: 'utf8' })
  return [
    ...(stdout.includes('src/base/for-tests.ts')
      ? []
      : ['knip lets src/base/for-tests.ts pass, which only a test uses']),
    ...(stdout.includes('src/base/used.ts') ? ['knip says that nothing uses src/base/used.ts'] : []),
  ]
}

function reexport(specifier: string): string {
  return `export * from '${specifier}'\n`
}

function cycle(own: string, other: string): string {
  return `import { ${other} } from './ring-${other}.ts'\n\nexport const ${own} = (): unknown => ${other}\n`
}

function typeCycle(own: string, other: string): string {
  const [type, next] = [own.toUpperCase(), other.toUpperCase()]
  return `import type { ${next} } from './ring-${other}.ts'\n\nexport type ${type} = { readonly next?: ${next} }\n`
}

function inTemporaryTree(check: (directory: string) => string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'muster-boundaries-'))
  try {
    return check(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const problems = [...inTemporaryTree(lintProblems), ...inTemporaryTree(deadCodeProblems)]
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
