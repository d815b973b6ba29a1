/**
 * `npm run prepack`: the program as it is installed. Our sources and all packages except node-pty, which has native parts, become
 * a few files: an installation fetches 3 packages instead of 117. As separate modules, the packages of `muster run` take longer to
 * find than a command on fifty hosts takes to run, and those of the console take 20 MB.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { writeManPages } from './generate-man.ts'

const ROOT = join(import.meta.dirname, '..')
/** Native parts: node-pty, and those that ssh2 does without if they are not compiled. */
const NATIVE = ['node-pty', 'cpu-features', '*.node']
/** Packages that are not installed: for widgets of blessed that no chart uses, and for debugging Ink programs. */
const MISSING = ['term.js', 'pty.js', 'react-devtools-core']

/** Packages whose package.json says MIT; the copyright holders are from their sources and repositories. */
const WITHOUT_LICENSE_FILE: Readonly<Record<string, string>> = {
  '@xterm/headless': `Copyright (c) 2017-2019, The xterm.js authors (https://github.com/xtermjs/xterm.js)
Copyright (c) 2014-2016, SourceLair Private Company (https://www.sourcelair.com)
Copyright (c) 2012-2013, Christopher Jeffrey (https://github.com/chjj/)`,
  'drawille-canvas-blessed-contrib': 'Copyright (c) Bence Dányi <madbence@gmail.com>',
  x256: 'Copyright (c) James Halliday <mail@substack.net>',
  'yoga-layout': 'Copyright (c) Meta Platforms, Inc. and affiliates.',
}

// What CommonJS packages expect to find.
const BANNER = `import { createRequire as createRequireOfNode } from 'node:module'
const require = createRequireOfNode(import.meta.url), __dirname = import.meta.dirname, __filename = import.meta.filename`

/** They load Node's own HTTP and TLS, and nobody here proxies SSH through HTTP. */
const WITHOUT_HTTP_AGENTS: Plugin = {
  name: 'without-http-agents',
  setup(at) {
    at.onLoad({ filter: /ssh2\/lib\/http-agents\.js$/ }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** The package string-width makes its tables of emoji only when a text needs them: that takes longer than the console's first screen. */
const LATE_WIDTHS: Plugin = {
  name: 'late-widths',
  setup(at) {
    const narrow = join(import.meta.dirname, '../src/base/narrow-text.ts')
    at.onLoad({ filter: /string-width\/index\.js$/ }, ({ path, suffix }) =>
      suffix === LATE_SUFFIX
        ? undefined
        : {
            contents: `import stripAnsi from 'strip-ansi'
import { NARROW } from ${JSON.stringify(narrow)}
export default (text, options = {}) => {
  const plain = typeof text === 'string' && !options.countAnsiEscapeCodes ? stripAnsi(text) : text
  return NARROW.test(plain) ? plain.length : require('./index.js${LATE_SUFFIX}').default(text, options)
}`,
            resolveDir: dirname(path),
          },
    )
  },
}
const LATE_SUFFIX = '?whole'

/** What does not work as it stands outside of `node_modules`. */
const REPAIRED: readonly { readonly file: RegExp; readonly given: string; readonly wanted: string }[] = [
  // Blessed names its widgets without the extension, by which alone the files in a bundle are found.
  {
    file: /blessed\/lib\/widget\.js$/,
    given: "require('./widgets/' + file)",
    wanted: "require('./widgets/' + file + '.js')",
  },
  // Node warns of this constructor in every file that is not below `node_modules`.
  {
    file: /drawille-blessed-contrib\/index\.js$/,
    given: 'new Buffer(width*height/8)',
    wanted: 'Buffer.alloc(width*height/8)',
  },
]
const REPAIRS: Plugin = {
  name: 'repairs',
  setup(at) {
    for (const { file, given, wanted } of REPAIRED)
      at.onLoad({ filter: file }, ({ path }) => {
        const source = readFileSync(path, 'utf8')
        if (!source.includes(given)) throw new Error(`${path} has no “${given}” now`)
        return { contents: source.replace(given, wanted) }
      })
  },
}

const PLUGINS = [WITHOUT_HTTP_AGENTS, LATE_WIDTHS, REPAIRS]

/** `main.ts` loads one of these files or the whole program, `run.ts` the last one. */
const PROCESSES = ['console-client.ts', 'console-process.ts', 'run-here.ts']
const PROCESSES_APART: Plugin = {
  name: 'processes-apart',
  setup(at) {
    at.onResolve(
      { filter: /^\.\/(console-client|console-process|whole-program|run-here)\.ts$/ },
      ({ path, importer }) =>
        /\/src\/(main|run)\.ts$/.test(importer) ? { path: path.replace(/ts$/, 'js'), external: true } : undefined,
    )
  },
}

/** A bundled file loads everything that it imports at the start. These modules are large and seldom needed, so they are loaded on first use. */
const LATE: Plugin = {
  name: 'late',
  setup(at) {
    at.onResolve({ filter: /^(node:http|node:sqlite|node-pty|react-devtools-core)$/ }, ({ path, namespace }) =>
      namespace === 'late' ? { path, external: true } : { path, namespace: 'late' },
    )
    at.onLoad({ filter: /./, namespace: 'late' }, ({ path }) => ({ contents: `module.exports = require('${path}')` }))
  },
}

/** Bundles `src/` under `root` into `directory`; `entries` are further modules that can be loaded by themselves, as `cli/connect/transports.ts`. */
export async function bundle(root: string, directory: string, entries: readonly string[] = []): Promise<void> {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const options: BuildOptions & { readonly metafile: true } = {
    absWorkingDir: root,
    outbase: join(root, 'src'),
    outdir: directory,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.13',
    external: [...NATIVE, ...MISSING],
    plugins: PLUGINS,
    banner: { js: BANNER },
    minifySyntax: true,
    minifyWhitespace: true,
    define: {
      // Turns React's checks and Ink's development tools off, whatever the user's environment says.
      'process.env.NODE_ENV': '"production"',
      'process.env.DEV': '"false"',
      // Yoga would load Node's HTTP client to decode its own code.
      fetch: 'undefined',
      'Intl.Segmenter': 'LateSegmenter',
    },
    inject: [join(import.meta.dirname, 'late-segmenter.ts')],
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    // `own-process.ts` assigns NODE_ENV for a run from the sources.
    logOverride: { 'require-resolve-not-external': 'silent', 'assign-to-define': 'silent' },
  }
  const sourceOf = (entry: string) => join(root, 'src', entry)
  const whole = await build({
    ...options,
    entryPoints: ['whole-program.ts', ...entries].map(sourceOf),
    splitting: true,
  })
  // Finding and reading a hundred files takes longer than a short command or the start of the console, so each of these is one file.
  const single = await build({
    ...options,
    entryPoints: ['compile-cache.ts', 'main.ts', 'run.ts', ...PROCESSES].map(sourceOf),
    splitting: false,
    plugins: [...PLUGINS, PROCESSES_APART, LATE],
  })
  const metafiles = [whole.metafile, single.metafile]
  for (const path of metafiles.flatMap(({ outputs }) => Object.keys(outputs)))
    if (path.endsWith('.js')) escapeNonAscii(resolve(root, path))
  const inputs = metafiles.flatMap((metafile) => Object.keys(metafile.inputs))
  const bundled = packagesIn(inputs, root)
  writeFileSync(join(directory, 'LICENSES.txt'), bundled.map(licenseOf).join('\n\n'))
  writeFileSync(join(directory, 'sbom.cdx.json'), await billOfMaterials(bundled, root))
}

/** One such character makes V8 keep the whole file with two bytes a character; only regular expressions still have them. */
function escapeNonAscii(path: string): void {
  const text = readFileSync(path, 'utf8')
  const unit = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const escaped = text.replace(/[\u0080-\uffff]/g, unit)
  if (escaped !== text) writeFileSync(path, escaped)
}

/** A package in these files. */
type Bundled = {
  /** `NAME@VERSION` */
  readonly id: string
  readonly name: string
  readonly directory: string
  readonly license: string
}

type Component = { readonly 'bom-ref': string; readonly properties?: readonly { readonly name: string }[] }

/** All packages of the installed program, in these files or beside them, with versions, licences and hashes: CycloneDX, as npm writes it. */
async function billOfMaterials(bundled: readonly Bundled[], root: string): Promise<string> {
  const npm = ['sbom', '--sbom-format=cyclonedx']
  const { stdout } = await promisify(execFile)('npm', npm, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const bill = JSON.parse(stdout) as { components: Component[]; dependencies: { ref: string; dependsOn: string[] }[] }
  const inFiles = new Set(bundled.map(({ id }) => id))
  const dropped = new Set(
    bill.components
      .filter((each) => isDevelopment(each) && !inFiles.has(each['bom-ref']))
      .map((each) => each['bom-ref']),
  )
  bill.components = bill.components.filter((component) => !dropped.has(component['bom-ref']))
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => !dropped.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((needed) => !dropped.has(needed)) }))
  const listed = new Set(bill.components.map((component) => component['bom-ref']))
  const missing = bundled.filter(({ id }) => !listed.has(id))
  if (missing.length > 0)
    throw new Error(`bundled, but not in npm's list of packages: ${missing.map(({ id }) => id).join(', ')}`)
  return `${JSON.stringify(bill, null, 2)}\n`
}

function isDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name }) => name === 'cdx:npm:package:development')
}

/** Sorted by id; each version of a package counts. */
function packagesIn(inputs: readonly string[], root: string): readonly Bundled[] {
  const directories = new Set(
    inputs.flatMap((path) => /.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []),
  )
  const packages = [...directories].map((path): Bundled => {
    const directory = resolve(root, path)
    const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
    return { id: `${name}@${version}`, name, directory, license: String(license) }
  })
  return [...new Map(packages.map((each) => [each.id, each])).values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** The packages that became part of these files want their licences beside them. */
function licenseOf({ id, name, directory, license }: Bundled): string {
  const title = `${id} (${license})`
  return `${title}\n${'='.repeat(title.length)}\n\n${licenseText(name, directory, license).trim()}\n`
}

function licenseText(name: string, directory: string, license: string): string {
  const file = readdirSync(directory).find((entry) => /^licen[sc]e/i.test(entry))
  if (file !== undefined) return readFileSync(join(directory, file), 'utf8')
  const holders = WITHOUT_LICENSE_FILE[name]
  if (holders === undefined || license !== 'MIT') throw new Error(`${name} has no licence file`)
  return readFileSync(join(ROOT, 'LICENSE'), 'utf8').replace(/^Copyright.*$/m, () => holders)
}

/** Everything that is installed in `dist/`: the program and its man pages. */
export async function buildProgram(directory: string): Promise<void> {
  await bundle(ROOT, directory)
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  await writeManPages(join(directory, 'man'), version)
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename)
  await buildProgram(join(ROOT, 'dist'))
