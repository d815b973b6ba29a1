/** A batch of small files to one host, by its helper: offered first, then sent in one piece what it has not. */
import { printable } from '../../base/printable.ts'
import { type BytePath, showPath } from './byte-path.ts'
import type { CopyAction } from './events.ts'
import type { RemoteHelper } from './remote-helper.ts'
import type { SmallFile, Unreadable } from './small-files.ts'
import type { SourceFile } from './source.ts'
import { temporaryOf } from './temporary-name.ts'

export type BatchTask = {
  readonly helper: RemoteHelper
  readonly isDryRun: boolean
  pathOf(file: SourceFile): BytePath
  modeOf(file: SourceFile): number
  /** Below a directory that could not be made. */
  isLeftOut(path: BytePath): boolean
  onLeftOut(file: SourceFile): void
  onFile(file: SourceFile, action: CopyAction, isSent: boolean, reason?: string): void
}

/** Rejects with HelperLost: what was not told by then is not done. */
export async function sendBatch(loaded: readonly (SmallFile | Unreadable)[], task: BatchTask): Promise<void> {
  const { helper, isDryRun, onFile } = task
  const items: (SmallFile & { readonly path: BytePath })[] = []
  for (const each of loaded) {
    const path = task.pathOf(each.file)
    if (task.isLeftOut(path)) task.onLeftOut(each.file)
    else if ('reason' in each) onFile(each.file, 'failed', false, `${showPath(each.file.path)}: ${each.reason}`)
    else items.push({ ...each, path })
  }
  const facts = ({ file, sha256 }: SmallFile) => [file.sizeBytes, task.modeOf(file), String(file.mtimeNs), sha256]
  const offer = items.map((item) => [item.path, ...facts(item)])
  const { answers = [] } = await helper.ask({ op: 'offer', files: offer, dress: !isDryRun })
  const needed: typeof items = []
  for (const [index, item] of items.entries()) {
    const answer = answers[index]
    if (answer === 'same') onFile(item.file, 'identical', false)
    else if (answer !== 'need') onFile(item.file, 'failed', false, reasonOf(answer?.slice(1)))
    else if (isDryRun) onFile(item.file, 'would-copy', false)
    else needed.push(item)
  }
  if (needed.length === 0) return
  const pack = needed.map((item) => [item.path, temporaryOf(item.path), ...facts(item)])
  const { failures = [] } = await helper.ask(
    { op: 'pack', files: pack },
    needed.map(({ bytes }) => bytes),
  )
  const reasons = new Map(failures)
  for (const [index, { file }] of needed.entries()) {
    const reason = reasons.get(index)
    if (reason === undefined) onFile(file, 'copied', true)
    else onFile(file, 'failed', true, reasonOf(reason))
  }
}

/** What a host says, made fit for a line. */
function reasonOf(text: unknown): string {
  return printable(String(text ?? '')) || 'failed'
}
