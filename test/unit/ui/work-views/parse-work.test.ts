import { describe, expect, it } from 'vitest'
import { parseWork, parseWorkLine, splitWords } from '../../../../src/ui/work-views/parse-work.ts'

describe('a line of the palette', () => {
  it('runs a command on the receivers', () => {
    expect(parseWorkLine('run uptime -p')).toEqual({ verb: 'run', target: undefined, command: 'uptime -p' })
  })

  it('may start with the colon that opened the palette', () => {
    expect(parseWorkLine(':run uptime')).toEqual({ verb: 'run', target: undefined, command: 'uptime' })
  })

  it('names hosts between on and a colon', () => {
    expect(parseWorkLine('run on @gpus!m[1-2] : echo a: b')).toEqual({
      verb: 'run',
      target: '@gpus!m[1-2]',
      command: 'echo a: b',
    })
  })

  it.each(['run', 'runner x', 'zoom', '', 'a run of it'])('%j is neither a run nor a copy', (line) => {
    expect(parseWorkLine(line)).toBeUndefined()
  })

  it.each(['fetch', ':fetch /etc/hosts'])('says where %j can be done', (line) => {
    expect(parseWorkLine(line)).toEqual({ error: expect.stringContaining('muster fetch HOSTS') })
  })

  it.each(['run ', 'run on m1:', 'copy a', 'copy on m1: a'])('says what %j lacks', (line) => {
    expect(parseWorkLine(line)).toEqual({ error: expect.stringMatching(/missing|then the destination/) })
  })

  it('does not read hosts without a colon as a command', () => {
    expect(parseWork('run', 'on @gpus uptime')).toEqual({ error: expect.stringContaining('add a colon') })
  })

  it('refuses a destination that names a host', () => {
    expect(parseWork('copy', 'a m1:/tmp/')).toEqual({ error: expect.stringContaining('Write /tmp/, or ./m1:/tmp/') })
    expect(parseWork('copy', 'a ./m1:/tmp/')).toMatchObject({ destination: './m1:/tmp/' })
  })

  it('copies several files, whose names may be quoted', () => {
    expect(parseWorkLine(`copy on m3: a.conf 'b c' "d'e" f\\ g /etc/app/`)).toEqual({
      verb: 'copy',
      target: 'm3',
      sources: ['a.conf', 'b c', "d'e", 'f g'],
      destination: '/etc/app/',
    })
  })
})

describe('words', () => {
  it('may be empty in quotes', () => {
    expect(splitWords(`'' ""`)).toEqual(['', ''])
  })

  it('are none when a quotation mark is not closed', () => {
    expect(splitWords("a 'b")).toBeUndefined()
  })
})
