import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { catchPrints } from '../../../../src/ui/tty/terminal-session.ts'

it('redirects output of libraries and warnings of Node, until it is restored', () => {
  const printed: string[] = []
  const before = console.warn
  const process = new EventEmitter()
  const warned: string[] = []
  process.on('warning', ({ message }: Error) => warned.push(message))
  const caught = catchPrints(process, (text) => printed.push(text))

  console.warn('late by %d ms', 24)
  process.emit('warning', new Error('too many listeners'))
  process.emit('warning', Object.assign(new Error('Buffer() is deprecated'), { name: 'DeprecationWarning' }))
  caught[Symbol.dispose]()
  process.emit('warning', new Error('after'))

  expect(printed).toEqual(['late by 24 ms', 'Error: too many listeners'])
  expect(warned).toEqual(['after'])
  expect(console.warn).toBe(before)
})
