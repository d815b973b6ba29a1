/**
 * `npm run prepack`: the program as it is installed. Our sources, and the packages that `run` needs, become a few files:
 * looking for two hundred of them took longer than running a command on fifty hosts. What only the console needs (Ink,
 * React, charts, the emulator, native parts) stays a package.
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
  'chalk',
  'cpu-features',
  'drawille*',
  'ink',
  'node-pty',
  'react',
  'string-width',
  'systeminformation',
  'zod',
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
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    logOverride: { 'require-resolve-not-external': 'silent' },
  })
  const bundled = packagesIn(Object.keys(metafile.inputs))
  writeFileSync(join(directory, 'LICENSES.txt'), licensesOf(bundled, root))
  writeFileSync(join(directory, 'sbom.cdx.json'), await billOfMaterials(bundled, root))
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
      if (file === undefined) throw new Error(`${name} has no licence file`)
      return `${name}\n${'='.repeat(name.length)}\n\n${readFileSync(join(directory, file), 'utf8').trim()}\n`
    })
    .join('\n\n')
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename)
  await bundle(ROOT, join(ROOT, 'dist'))
