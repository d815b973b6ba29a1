/** A scheduler keeps the hosts and resources that hosts.yaml declared when it started: says when the file declares others. */
import { basename, dirname } from 'node:path'
import { watchDirectory } from '../../base/watch-directory.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { driverHost } from './open-queue.ts'

const declaredOf = ({ hosts }: Inventory): string => JSON.stringify(hosts.map(driverHost))

/** `load`: reads the file again. */
export function watchDeclared(own: Inventory, load: () => Promise<Inventory>, say: (text: string) => void): Disposable {
  const { file } = own
  if (file === undefined) return { [Symbol.dispose]() {} }
  const first = declaredOf(own)
  let told = first
  const check = async () => {
    // While it is being edited it may be wrong: the next change is looked at again.
    const declared = await load().then(declaredOf, () => told)
    if (declared === told) return
    told = declared
    if (declared !== first) say(`${file} declares other hosts or resources now: restart this scheduler to use them`)
  }
  return watchDirectory(dirname(file), (name) => {
    if (name === null || name === basename(file)) void check()
  })
}
