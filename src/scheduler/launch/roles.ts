/** `--role NAME=COUNT[:cpu=4,gpu=1,memory=16GiB]`: bundles with requests of their own. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { parseMemorySize } from '../../inventory/hosts-yaml-schema.ts'
import { gpusAsked, milliOf, type ResourceRequest } from '../model/resources.ts'
import type { Role } from './launcher.ts'

const MOST = 10_000

/** What is not said is as in `request`. `names`: those that it may have; undefined: any. @throws MusterError 'usage' */
export function parseRole(text: string, request: ResourceRequest, names?: readonly string[]): Role {
  const wrong = (why: string) => new MusterError('usage', `--role ${printable(text)}: ${why}`)
  const [, name = '', count = '', rest = ''] = /^([a-z]+)=(\d{1,5})(?::(.+))?$/.exec(text) ?? []
  if (name === '') throw wrong('write it as worker=3 or worker=3:gpu=1,cpu=4')
  if (names?.includes(name) === false) throw wrong(`the roles are ${names?.join(', ')}`)
  if (Number(count) < 1 || Number(count) > MOST) throw wrong(`a role has 1 to ${MOST} bundles`)
  let own = request
  const given = new Set<string>()
  for (const pair of rest === '' ? [] : rest.split(',')) {
    const [key = '', value = ''] = pair.split('=')
    if (given.has(key)) throw wrong(`${key} is given twice`)
    given.add(key)
    if (key === 'memory') {
      const memoryBytes = parseMemorySize(value)
      if (memoryBytes === undefined) throw wrong('write memory as 16GiB')
      own = { ...own, memoryBytes }
      continue
    }
    const amount = Number(value)
    if (!/^\d{1,9}(\.\d{1,6})?$/.test(value)) throw wrong(`${key || pair} needs a number`)
    if (key === 'cpu') own = { ...own, cpuMilli: milliOf(amount, 'up') }
    else if (key === 'gpu') {
      const gpus = gpusAsked(amount)
      if (typeof gpus === 'string') throw wrong(gpus)
      own = { ...own, ...gpus }
    } else throw wrong('a role can ask for cpu, gpu and memory')
  }
  return { name, count: Number(count), request: own }
}
