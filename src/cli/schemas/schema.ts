import { about, line, list, output, text } from './shape.ts'

export const schema = output(
  'schema',
  '`muster schema --json`',
  line('schema', 'A schema that is installed with Muster.', {
    name: text,
    path: text,
    verbs: about('The verbs that print such lines with --json; empty for a file that Muster reads.', list(text)),
  }),
)
