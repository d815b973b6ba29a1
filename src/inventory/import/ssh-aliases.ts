/** The hosts that ssh_config calls by name: their aliases are all that hosts.yaml needs. */
import { printable } from '../../base/printable.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'

type Block = { readonly aliases: readonly string[]; readonly line: number; hostName?: string }

/** Reads one file; `include` is called with the words of each Include line. */
export function importSshAliases(
  { path, text }: SourceFile,
  inventory: ImportedInventory,
  include: (words: readonly string[]) => void,
): void {
  let block: Block | undefined
  const finish = (): void => {
    if (block) addBlock(block, path, inventory)
    block = undefined
  }
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const match = /^\s*([A-Za-z]\w*)(?:\s*=\s*|\s+)(.*?)\s*$/.exec(raw)
    const keyword = match?.[1]?.toLowerCase()
    const words = [...(match?.[2] ?? '').matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
    if (keyword === 'host') {
      finish()
      block = { aliases: words.filter((word) => !/[*?!]/.test(word)), line: index + 1 }
    } else if (keyword === 'match') {
      finish()
      inventory.note(path, index + 1, `Match ${printable(words.join(' '))} names no host of its own`)
    } else if (keyword === 'include') include(words)
    else if (keyword === 'hostname' && block) block.hostName ??= words[0] ?? ''
  }
  finish()
}

/** Several aliases with one HostName are one machine; without it, or with `%h` in it, they are several. */
function addBlock({ aliases, line, hostName }: Block, path: string, inventory: ImportedInventory): void {
  const isOneMachine = hostName !== undefined && !hostName.includes('%h')
  const [first, ...others] = aliases
  if (isOneMachine && others.length > 0) {
    inventory.note(path, line, `${printable(others.join(' '))}: other names of ${printable(first ?? '')}`)
  }
  for (const alias of isOneMachine ? aliases.slice(0, 1) : aliases) inventory.addHost(alias, {}, path, line)
}
