/** JSON Schemas of the files that Muster reads, for editors, out of the schemas that read them. */
import { fileSections } from '../src/cli/bring-up/areas.ts'
import { hostsYamlJson } from '../src/inventory/hosts-yaml-schema.ts'
import { preferencesJson } from '../src/ui/preferences.ts'

const text = (schema: object): string => `${JSON.stringify(schema, null, 2)}\n`

/** The whole text of docs/schema/files/hosts.yaml.schema.json. */
export const renderHostsYamlSchema = async (): Promise<string> => text(hostsYamlJson(await fileSections()))

/** The whole text of docs/schema/files/preferences.yaml.schema.json. */
export const renderPreferencesSchema = (): string => text(preferencesJson())
