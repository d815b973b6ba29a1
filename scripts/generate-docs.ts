/** Writes the generated documentation (`npm run docs`); with `--check` fails when what is committed is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { renderCommandsDocs } from './generate-commands-docs.ts'
import { renderHostsYamlSchema, renderPreferencesSchema } from './generate-file-schemas.ts'
import { renderHostsYamlDocs } from './generate-hosts-yaml-docs.ts'
import { renderKeysDocs } from './generate-keys-docs.ts'
import { renderFieldsDocs, schemaDocuments } from './generate-schemas.ts'

const documents: readonly (readonly [path: string, render: () => string | Promise<string>])[] = [
  ['docs/keys.md', renderKeysDocs],
  ['docs/hosts-yaml.md', renderHostsYamlDocs],
  ['docs/commands.md', renderCommandsDocs],
  ['docs/json-fields.md', renderFieldsDocs],
  ...schemaDocuments,
  ['docs/schema/files/hosts.yaml.schema.json', renderHostsYamlSchema],
  ['docs/schema/files/preferences.yaml.schema.json', renderPreferencesSchema],
]

const isCheck = process.argv.includes('--check')
for (const [path, render] of documents) {
  const url = new URL(`../${path}`, import.meta.url)
  const wanted = await render()
  if (!isCheck) {
    writeFileSync(url, wanted)
    continue
  }
  let present = ''
  try {
    present = readFileSync(url, 'utf8')
  } catch {
    // A missing document is stale, too.
  }
  if (present === wanted) continue
  process.stderr.write(`${path} is stale: run \`npm run docs\`\n`)
  process.exitCode = 1
}
