/**
 * `npm run prepack`: the program as it is installed. Our sources, and the packages that `run` needs, become a few files:
 * looking for two hundred of them took longer than running a command on fifty hosts. What only the console needs (Ink,
 * React, charts, the emulator, native parts) stays a package.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
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

/** Bundles `src/` under `root` into `directory`; `entries` are further modules that can be loaded by themselves, as `cli/context.ts`. */
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
  writeFileSync(join(directory, 'LICENSES.txt'), licensesOf(packagesIn(Object.keys(metafile.inputs)), root))
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
