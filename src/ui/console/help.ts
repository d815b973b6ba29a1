/** The help and docs/keys.md, both from the table of actions. Pure. */

import { padEnd, wrapText } from '../../base/text-width.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { ACTION_SECTIONS, actionSpecs, type Keymap, keysOf } from '../keys/registry.ts'
import { pageKeys } from '../tabs/page-keys.ts'
import { PAGE_TABS } from '../tabs/tabs.ts'
import { panelKeys } from '../work-views/panel-keys.ts'

export function helpLines(keymap: Keymap, leader: string): DialogLine[] {
  const lines: DialogLine[] = [
    {
      text: `Keys go to the receivers. ${leader} first makes the next key a command; ${leader} twice sends ${leader}.`,
    },
    { text: 'Mouse: click focuses, click on a title toggles the host, wheel scrolls back.', tone: 'muted' },
  ]
  for (const section of ACTION_SECTIONS) {
    lines.push({ text: '' }, { text: section, tone: 'accent' })
    for (const spec of actionSpecs) {
      if (spec.section !== section) continue
      lines.push({ text: `${padEnd(keysOf(keymap, spec.id).join(' '), 14)} ${spec.help}` })
    }
  }
  lines.push({ text: '' }, { text: 'Inside the view of a run or a copy, without the leader', tone: 'accent' })
  for (const { keys, help } of panelKeys) lines.push({ text: `${padEnd(keys.join(' '), 14)} ${help}` })
  for (const { id, title } of PAGE_TABS) {
    lines.push({ text: '' }, { text: `On the tab ${title}, without the leader`, tone: 'accent' })
    for (const { keys, help } of pageKeys[id]) lines.push({ text: `${padEnd(keys.join(' '), 14)} ${help}` })
  }
  return lines
}

/** The lines at most `columns` wide: an entry goes on under its text, a paragraph at the margin. */
export function wrapHelp(lines: readonly DialogLine[], columns: number): DialogLine[] {
  return lines.flatMap((line) =>
    line.text === ''
      ? [line]
      : wrapText(line.text, columns, / {2,}/.test(line.text) ? ' '.repeat(15) : '').map((text) => ({ ...line, text })),
  )
}

const keyRow = ({ keys, help }: { readonly keys: readonly string[]; readonly help: string }): string =>
  `| ${keys.map((key) => `\`${key}\``).join(' ')} | ${help} |`

export function renderKeysDocs(keymap: Keymap, leader: string): string {
  const out = [
    '# Keys',
    '',
    `Generated from the table of actions (\`npm run docs\`). What you type goes to the receivers. The leader, **\`${leader}\`**, makes the next key a command; twice, it is sent itself.`,
    'Leader and keys can be changed in `$XDG_CONFIG_HOME/muster/preferences.yaml`: `leader: Ctrl-a`, `keys: { zoom: [z, F11] }` (the names are in the last column).',
  ]
  for (const section of ACTION_SECTIONS) {
    out.push('', `## ${section}`, '', '| after the leader | does | name |', '| --- | --- | --- |')
    for (const spec of actionSpecs) {
      if (spec.section !== section) continue
      const keys = keysOf(keymap, spec.id)
        .map((key) => `\`${key.replaceAll('|', '\\|')}\``)
        .join(' ')
      out.push(`| ${keys} | ${spec.help} | \`${spec.id}\` |`)
    }
  }
  out.push(
    '',
    '## Choosing panes',
    '',
    'After a move or a toggle the arrows go on moving and Space goes on toggling, without the leader. Any other key types again; Esc and Enter only end the choosing.',
    '',
    '## Scrolling back',
    '',
    '| key | does |',
    '| --- | --- |',
    '| `Up` `Down` `k` `j` | a line |',
    '| `PageUp` `PageDown` `b` `Space` | a page |',
    '| `Ctrl-u` `Ctrl-d` | half a page |',
    '| `g` `Home` `G` `End` | oldest, newest |',
    '| `/` | search (a needle without capitals ignores case) |',
    '| `n` `N` | the hit before, the hit after |',
    '| `Esc` `q` | back to typing |',
    '',
    '## The view of a run or a copy',
    '',
    'While it has the keys the header says so, and no host receives any.',
    '',
    '| key | does |',
    '| --- | --- |',
    ...panelKeys.map(keyRow),
    ...PAGE_TABS.flatMap(({ id, title }) => [
      '',
      `## The tab ${title}`,
      '',
      'No key reaches a host here. A number alone chooses another tab.',
      '',
      '| key | does |',
      '| --- | --- |',
      ...pageKeys[id].map(keyRow),
    ]),
    '',
    '## Mouse',
    '',
    'A click focuses a pane, a click on its title adds it to the receivers or takes it out, the wheel scrolls back; a program that fills the screen without asking for the mouse (`less`) gets the wheel as arrows. Where the program in the pane asked for the mouse, it gets the clicks inside its pane, and the drags that begin there to their end.',
    '',
  )
  return out.join('\n')
}
