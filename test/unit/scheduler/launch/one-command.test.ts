// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are expansions of the shell
import { describe, expect, it } from 'vitest'
import { ditask } from '../../../../src/scheduler/launch/ditask.ts'
import { mpi } from '../../../../src/scheduler/launch/mpi.ts'
import { commandFor, oneCommand } from '../../../../src/scheduler/launch/one-command.ts'
import { rowLauncher } from '../../../../src/scheduler/launch/rows.ts'
import { vllm } from '../../../../src/scheduler/launch/vllm.ts'

const row = (command: readonly string[], first?: readonly string[]) =>
  rowLauncher('plain', {
    command,
    ...(first === undefined ? {} : { first }),
    per: 'host',
    ports: 0,
    environment: {},
    done: 'all',
  })

it.each([
  // The shell of the host might change the value, and it may be a secret.
  ['A=$HOME/x train.py', '--env A=VALUE'],
  ['PATH+=:/opt train.py', '--env PATH=VALUE'],
  ['MYSQL_PWD=x train.py', '--env MYSQL_PWD=VALUE'],
])('the hint for %j says %s', (line, hint) => {
  expect(commandFor(vllm, line)).toMatchObject({ hint: `Use: ${hint}` })
})

describe('one simple command', () => {
  it.each([
    'train.py',
    'train.py --lr 0.1 "$SEED" \'a; b\' "c && d"',
    'train.py *.txt ~/data ${HOME}/x {a,b}',
    'train.py "$(basename "$PWD")" `date "+%s; x"` "$(echo "a; b" | tr a b)"',
    'train.py $((1 << 2)) "${X:-a; b}" $(echo "(a)" \')\')',
    'train.py >out 2>&1 <in 3>>more >|over <>both 4>&-',
    '>out train.py',
    'train.py a\\;b \\# a#b a=b --x=1 if done { }',
    'train.py \\\n  --lr 0.1',
    'train.py "a\n;b"',
    'train.py \'\' "" a\'b\'"c"d',
  ])('is %j', (line) => {
    expect(oneCommand(line)).toEqual({ isOne: true, text: line })
  })

  it('has no blanks around it, and keeps an escaped one', () => {
    expect(oneCommand(' \n train.py a\\ \n\n')).toEqual({ isOne: true, text: 'train.py a\\ ' })
    expect(oneCommand('train.py a \\\n')).toEqual({ isOne: true, text: 'train.py a' })
  })

  it.each([
    ['echo a; false', 'has ; outside quotes'],
    ['a && b', 'has && outside quotes'],
    ['a || b', 'has || outside quotes'],
    ['a | b', 'has | outside quotes'],
    ['a &', 'has & outside quotes'],
    ['a &>f', 'has & outside quotes'],
    ['a <<E\nb\nE', 'has << outside quotes'],
    ['(a)', 'has ( outside quotes'],
    ['f() { a; }', 'has ( outside quotes'],
    ['a <(b)', 'has ( outside quotes'],
    ['a\nb', 'has several lines'],
    ['{ a; }', 'begins with {'],
    ['if a; then b; fi', 'begins with if'],
    ['! a', 'begins with !'],
    ['time a', 'begins with time'],
    ['A=1 b', 'sets the variable A before the command'],
    ['>f A=1 b', 'sets the variable A before the command'],
    ['A=1', 'sets the variable A before the command'],
    ['a # b', 'has a comment (#)'],
    ['a $(b # c\n)', 'has a comment (#)'],
    ['a $(b <<E\nc\nE\n)', 'has << in $(…)'],
    ['a "b', 'has a " that is not closed'],
    ["it's", "has a ' that is not closed"],
    ['a `b', 'has a ` that is not closed'],
    ['a $(b', 'has a ( that is not closed'],
    ['a $((1)', 'has a ( that is not closed'],
    ['a ${b', 'has a { that is not closed'],
    ["a $'b\\'; c'", "has $'…'"],
    ['a "${b:-\'}"', "has ' in ${…}"],
    ['a \\', 'ends with a backslash'],
    ['a >', 'has a redirection without a file'],
    ['a > >f', 'has a redirection without a file'],
    ['>f', 'has no command'],
    [' ', 'has no command'],
  ])('is not %j', (line, why) => {
    expect(oneCommand(line)).toMatchObject({ isOne: false, why })
  })
})

describe('the command of a launcher', () => {
  it('is one simple command where it stands among words of the launcher, else any line for sh', () => {
    const line = 'echo a; false'
    for (const whole of [mpi, row([]), row(['{command}']), row(['sleep', '9'], ['{command}'])])
      expect(commandFor(whole, line)).toEqual({ text: line })
    const all = [row(['env']), row(['sleep', '9'], ['env', '{command}']), row([], ['env']), vllm, ditask]
    for (const launcher of all)
      expect(commandFor(launcher, line)).toMatchObject({
        reason: `--launch ${launcher.name} needs one simple command, but this line has ; outside quotes`,
      })
    for (const launcher of all) expect(commandFor(launcher, 'echo a\n')).toEqual({ text: 'echo a' })
  })

  it('is refused with what to write in its place', () => {
    expect(commandFor(row(['env']), 'a | b')).toMatchObject({ hint: expect.stringContaining("sh -c 'LINE'") })
  })
})
