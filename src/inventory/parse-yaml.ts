/** YAML that somebody else may have written: what is nested without end is an error with its place, not a full stack. */
import {
  type Document,
  type DocumentOptions,
  Lexer,
  type ParseOptions,
  Parser,
  parseDocument,
  type SchemaOptions,
  YAMLParseError,
} from 'yaml'

/** A hosts.yaml of every feature needs fewer than ten. */
const MAX_LEVELS = 100

/** As the library's `parseDocument`; `errors` of the document names nesting that is too deep, and then it is empty. */
export function parseYaml(text: string, options: ParseOptions & DocumentOptions & SchemaOptions = {}): Document.Parsed {
  const offset = tooDeepAt(text)
  if (offset === undefined) return parseDocument(text, options)
  const document = parseDocument('')
  const message = `nested more than ${MAX_LEVELS} levels deep`
  document.errors.push(new YAMLParseError([offset, offset + 1], 'IMPOSSIBLE', message))
  for (let start = 0; start <= offset; start = text.indexOf('\n', start) + 1) {
    options.lineCounter?.addNewLine(start)
    if (text.indexOf('\n', start) < 0) break
  }
  return document
}

/** Where the text goes deeper than it may. */
function tooDeepAt(text: string): number | undefined {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    // What it gives are documents that are done and have left the stack.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > MAX_LEVELS) return parser.offset - lexeme.length
  }
  return undefined
}
