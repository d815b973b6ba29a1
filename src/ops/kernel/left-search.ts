/** Leftovers that are files: decides from the answer of a host what may be removed, and how. Pure. */
import { defined } from '../../base/defined.ts'
import type { LeftKind, LeftSearch } from '../../base/left.ts'
import type { Known } from './fact.ts'
import { defineLeft, type Leftover, type LeftRoom, unknownOf } from './left.ts'
import { decodeWord, LEFT_HOLDER, type LeftAnswer, type LeftRecord, leftFact, setPath } from './left-script.ts'

/** Something that changed so lately may belong to a command that is just beginning. */
const BRIEF_S = 10

export function roomOfSearch(search: LeftSearch): LeftRoom {
  return defineLeft<{ found: LeftAnswer }>({
    name: search.name,
    factsOf: (_, __, also) => ({ found: leftFact(search.find, also) }),
    itemsOf: ({ found }) => leftoversOf(found, search.kinds),
  })
}

/** `stateOf`: what an area knows better of one thing. */
export function leftoversOf(
  found: Known<LeftAnswer>,
  kinds: LeftSearch['kinds'],
  stateOf: (record: LeftRecord, path: string) => Leftover['state'] | undefined = () => undefined,
): Leftover[] {
  if (found.kind === 'unknown') return [unknownOf('files', found.because)]
  const items = found.value.records.flatMap((record): Leftover[] => {
    const kind = kinds[record.kind]
    if (kind === undefined) return []
    const path = decodeWord(record.path)
    const { count, bytes, changedS } = record
    return [
      {
        what: `${kind.title}${count === 1 ? '' : ` (${count})`}: ${path}`,
        ...defined({ bytes, changedS }),
        state:
          heldState(record, kind, found.value) ?? stateOf(record, path) ?? removal(record, kind, path, found.value),
      },
    ]
  })
  return found.value.isCut
    ? [...items, unknownOf('more files', 'there are too many, or the search took too long')]
    : items
}

function heldState(record: LeftRecord, kind: LeftKind, { uid, nowS }: LeftAnswer): Leftover['state'] | undefined {
  const { changedS, process, reason } = record
  if (record.uid !== undefined && record.uid !== uid && !(record.uid === 0 && kind.isOfRoot === true)) {
    const owner = record.uid === 0 ? 'root' : `another account (${record.uid})`
    return { kind: 'kept', because: `it belongs to ${owner}` }
  }
  if (kind.keep !== undefined) return { kind: 'kept', because: kind.keep }
  if (reason !== undefined) return { kind: 'used', because: reason }
  if (process !== undefined) return { kind: 'used', because: `process ${process} uses it` }
  if (kind.isBrief === true && changedS !== undefined && Math.abs(nowS - changedS) < BRIEF_S)
    return { kind: 'used', because: 'it has just changed' }
  return undefined
}

function removal(record: LeftRecord, kind: LeftKind, path: string, { uid }: LeftAnswer): Leftover['state'] {
  const asRoot = record.uid === 0 && uid !== 0
  const p = setPath(record.path)
  const there = `{ [ -e "$p" ] || [ -L "$p" ]; }`
  // It is looked at again right before it goes.
  const guard =
    kind.isSum === true
      ? ''
      : `${there} || exit 0
${LEFT_HOLDER}
left_look
held=$(left_holder "$p")
[ -z "$held" ] || { echo "process $held uses $p" >&2; exit 1; }
`
  return {
    kind: 'left',
    steps: [
      {
        title: kind.action ?? `remove the ${kind.title}`,
        changes: [`- ${path}`],
        run: { script: `${p}\n${guard}${kind.remove ?? 'rm -rf "$p"'}`, asRoot },
        ...(kind.isSum === true ? {} : { check: { script: `${p}\n! ${there}`, asRoot } }),
      },
    ],
  }
}
