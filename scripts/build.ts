/**
 * `npm run prepack`: the program as it is installed. Our sources, and most packages, become a few files: looking for two hundred
 * of them took longer than running a command on fifty hosts, and the console's eight hundred took 20 MB. The emulator, charts
 * and native parts stay packages.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const EXTERNAL = [
  '@xterm/*',
  'blessed*',
  'cpu-features',
  'drawille*',
  'node-pty',
  'react-devtools-core',
  'systeminformation',
  '*.node',
]

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

/** Bundles `src/` under `root` into `directory`; `entries` are further modules that can be loaded by themselves, as `cli/connect/transports.ts`. */
export async function bundle(root: string, directory: string, entries: readonly string[] = []): Promise<void> {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['main.ts', 'compile-cache.ts', ...entries].map((entry) => join(root, 'src', entry)),
    outbase: join(root, 'src'),
    outdir: directory,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.13',
    external: EXTERNAL,
    plugins: [WITHOUT_HTTP_AGENTS],
    banner: { js: BANNER },
    minifySyntax: true,
    minifyWhitespace: true,
    // Yoga would load Node's HTTP client to decode its own code.
    define: { 'process.env.NODE_ENV': '"production"', fetch: 'undefined' },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    // `main.ts` sets NODE_ENV for the sources, which decide when they run.
    logOverride: { 'require-resolve-not-external': 'silent', 'assign-to-define': 'silent' },
  })
  for (const path of Object.keys(metafile.outputs)) if (path.endsWith('.js')) escapeNonAscii(resolve(root, path))
  const bundled = packagesIn(Object.keys(metafile.inputs))
  writeFileSync(join(directory, 'LICENSES.txt'), licensesOf(bundled, root))
  writeFileSync(join(directory, 'sbom.cdx.json'), await billOfMaterials(bundled, root))
}

/** Only regular expressions still have such characters, and one is enough for V8 to keep a whole file with two bytes for each. */
function escapeNonAscii(path: string): void {
  const text = readFileSync(path, 'utf8')
  const unit = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const escaped = text.replace(/[\u0080-\uffff]/g, unit)
  if (escaped !== text) writeFileSync(path, escaped)
}

type Component = { readonly 'bom-ref': string; readonly properties?: readonly { readonly name: string }[] }

/** All packages of the installed program, in these files or beside them, with versions, licences and hashes: CycloneDX, as npm writes it. */
async function billOfMaterials(bundled: readonly string[], root: string): Promise<string> {
  // npm's `--omit=dev` also leaves out packages that the program shares with a development tool (npm 11.19).
  const npm = ['sbom', '--sbom-format=cyclonedx']
  const { stdout } = await promisify(execFile)('npm', npm, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const bill = JSON.parse(stdout) as { components: Component[]; dependencies: { ref: string }[] }
  const dropped = new Set(bill.components.filter(isDevelopment).map((component) => component['bom-ref']))
  bill.components = bill.components.filter((component) => !dropped.has(component['bom-ref']))
  bill.dependencies = bill.dependencies.filter(({ ref }) => !dropped.has(ref))
  const listed = new Set(bill.components.map((component) => component['bom-ref'].replace(/(?<=.)@[^@]*$/, '')))
  const missing = bundled.filter((name) => !listed.has(name))
  if (missing.length > 0) throw new Error(`bundled, but not in npm's list of packages: ${missing.join(', ')}`)
  return `${JSON.stringify(bill, null, 2)}\n`
}

function isDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name }) => name === 'cdx:npm:package:development')
}

function packagesIn(inputs: readonly string[]): readonly string[] {
  const names = inputs.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [])
  return [...new Set(names)].sort()
}

/** The packages that became part of these files want their licences beside them. */
function licensesOf(packages: readonly string[], root: string): string {
  return packages
    .map((name) => {
      const directory = join(root, 'node_modules', name)
      const file = readdirSync(directory).find((entry) => /^licen[sc]e/i.test(entry))
      const text = file === undefined ? noticeOf(directory) : readFileSync(join(directory, file), 'utf8')
      return `${name}\n${'='.repeat(name.length)}\n\n${text.trim()}\n`
    })
    .join('\n\n')
}

/** Of a package without a licence file, as yoga-layout 3.2: its licence by name, and the notice at the head of its code. */
function noticeOf(directory: string): string {
  const { license, main } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
  const notice = /^\/\*\*?.*?copyright.*?\*\//is.exec(readFileSync(join(directory, main), 'utf8'))?.[0]
  if (typeof license !== 'string' || notice === undefined) throw new Error(`${directory} has no licence`)
  return `${license}\n\n${notice}`
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename)
  await bundle(ROOT, join(ROOT, 'dist'))
