/** Man pages from the table of verbs: muster(1), and muster-VERB(1) for each verb or group of verbs. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type Command, Help, type Option } from 'commander'
import { pathOf, VerbTree } from '../src/cli/command-line/tree.ts'
import { EXIT, type VerbTable } from '../src/cli/command-line/verb.ts'
import { CONSOLE } from '../src/cli/console/entry.ts'
import { VERBS } from '../src/cli/verbs.ts'
import { ABOUT_VARIABLES, ENVIRONMENT_VARIABLES } from './environment-variables.ts'

const EXIT_CODES: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'Success.',
  failed: 'Something failed on a host, or differs.',
  usage: 'The command line is wrong; nothing was done.',
  configuration: 'hosts.yaml, another file or this machine cannot be used.',
  unreachable: 'A host could not be reached, or refused the login.',
  incomplete: 'A plan could not be completed.',
  later: 'It fits, but only later (muster plan).',
  interrupted: 'Interrupted or declined.',
}

/** The text of each page, by file name. */
export async function renderManPages(version: string, verbs: VerbTable = VERBS): Promise<ReadonlyMap<string, string>> {
  const tree = new VerbTree(CONSOLE, verbs, { stdout: new PassThrough(), stderr: new PassThrough() }, async () => {})
  const { program } = tree
  const shown = program.createHelp().visibleCommands(program)
  await Promise.all([program, ...shown].map((command) => tree.load(command)))
  const head = (name: string, about: string): string =>
    `.TH ${name.toUpperCase()} 1 "" "muster ${version}" "Muster"\n.SH NAME\n${escaped(name)} \\- ${escaped(about)}\n`
  const pages = new Map<string, string>()
  for (const command of shown) {
    const name = `muster-${command.name()}`
    const below = command.createHelp().visibleCommands(command)
    const body = below.length === 0 ? sectionsOf(tree, command, '.SH') : groupSections(tree, command, below)
    const shared = sectionOf('.SH', 'SHARED OPTIONS', optionsText(tree.sharedOptionsOf(command)))
    pages.set(`${name}.1`, `${head(name, command.description())}${body}${shared}.SH SEE ALSO\n.BR muster (1)\n`)
  }
  const list = shown.map((command) => tagged(command.name(), command.description())).join('')
  const codes = Object.entries(EXIT_CODES).map(([key, text]) => tagged(String(EXIT[key as keyof typeof EXIT]), text))
  pages.set(
    'muster.1',
    [
      head('muster', CONSOLE.summary),
      sectionsOf(tree, program, '.SH'),
      sectionOf('.SH', 'VERBS', `${paragraph('Each has a page of its own, such as muster-run(1).')}${list}`),
      sectionOf('.SH', 'EXIT STATUS', codes.join('')),
      sectionOf(
        '.SH',
        'ENVIRONMENT',
        `${paragraph(ABOUT_VARIABLES)}${ENVIRONMENT_VARIABLES.map(([name, meaning]) => tagged(name, meaning)).join('')}`,
      ),
      sectionOf(
        '.SH',
        'FILES',
        [
          tagged('./hosts.yaml, ~/.config/muster/hosts.yaml', 'Hosts, groups, and what muster up sets up on them.'),
          tagged('~/.config/muster/preferences.yaml', 'Keys, theme and other settings of the console.'),
          tagged('~/.local/state/muster/', 'The queue, journals, results and histories.'),
        ].join(''),
      ),
      sectionOf('.SH', 'SEE ALSO', '.BR ssh (1),\n.BR ssh_config (5)\n'),
    ].join(''),
  )
  return pages
}

/** Writes the pages that package.json lists, so that npm links them where man looks. */
export async function writeManPages(directory: string, version: string): Promise<void> {
  mkdirSync(directory, { recursive: true })
  for (const [name, text] of await renderManPages(version)) writeFileSync(join(directory, name), text)
}

function groupSections(tree: VerbTree, group: Command, below: readonly Command[]): string {
  const list = below.map((command) => tagged(command.name(), command.description())).join('')
  const verbs = below.map(
    (command) =>
      `${sectionOf('.SH', pathOf(command).toUpperCase(), paragraph(`${command.description()}.`))}${sectionsOf(tree, command, '.SS')}`,
  )
  return [sectionOf('.SH', 'SYNOPSIS', paragraph(usageOf(group))), sectionOf('.SH', 'VERBS', list), ...verbs].join('')
}

function sectionsOf(tree: VerbTree, command: Command, level: '.SH' | '.SS'): string {
  const help = command.createHelp()
  const title = (text: string): string => (level === '.SH' ? text.toUpperCase() : text)
  const operands = help.visibleArguments(command).map((each) => tagged(each.name(), help.argumentDescription(each)))
  return [
    sectionOf(level, title('Synopsis'), paragraph(usageOf(command))),
    sectionOf(level, title('Arguments'), operands.join('')),
    sectionOf(level, title('Options'), optionsText(help.visibleOptions(command))),
    helpSections(tree.helpOf(command), level),
  ].join('')
}

const usageOf = (command: Command): string => command.createHelp().commandUsage(command)

const optionsText = (options: readonly Option[]): string =>
  options.map((option) => tagged(option.flags, new Help().optionDescription(option))).join('')

/** `Examples:` and other titled parts of a verb's help, with their lines as they are. */
function helpSections(help: string, level: '.SH' | '.SS'): string {
  const parts = help.trim().split(/^(\S.*):\n/m)
  const [before = '', ...titled] = parts
  const sections = titled.flatMap((title, index) =>
    index % 2 === 0
      ? [sectionOf(level, level === '.SH' ? title.toUpperCase() : title, verbatim(titled[index + 1] ?? ''))]
      : [],
  )
  return (before.trim() === '' ? '' : `.PP\n${verbatim(before)}`) + sections.join('')
}

const sectionOf = (level: '.SH' | '.SS', title: string, text: string): string =>
  text === '' ? '' : `${level} "${escaped(title)}"\n${text}`

const paragraph = (text: string): string => `${escaped(text)}\n`

const tagged = (tag: string, text: string): string => `.TP\n.B ${escaped(tag)}\n${escaped(text)}\n`

const verbatim = (text: string): string =>
  `.nf\n${text
    .replace(/^\n+|\s+$/g, '')
    .split('\n')
    .map(escaped)
    .join('\n')}\n.fi\n`

/** A line of text in which roff acts on nothing. */
function escaped(text: string): string {
  const line = text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^(\s*)([.'])/, '$1\\&$2')
    .replace(/"/g, '\\(dq')
  return line.replace(/[^ -~]/gu, (one) => `\\[u${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`)
}
