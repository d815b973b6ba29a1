/** What the report of a session hides: passwords, wherever a host prints them, and as little else as it can. */
import { describe, expect, it } from 'vitest'
import { Questions } from '../../../../src/ui/console/dialogs.ts'
import { harness, titlesOf } from './report-harness.ts'

it('never has what was typed without echo, even where another host shows it', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('whoami', () => 'me\r\n')
  type('sudo -k true\r')
  for (const host of ['m1', 'm2']) await print(host, 'sudo -k true\r\n[sudo] password for me: ')
  // m3 does not ask: the password lands at its prompt.
  await print('m3', 'sudo -k true\r\n\x1b[?2004hm3# ')
  type('hunter2-secret\r')
  for (const host of ['m1', 'm2']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await print('m3', 'hunter2-secret\r\nbash: hunter2-secret: command not found\r\n\x1b[?2004hm3# ')
  await run('history', () => '  1  whoami\r\n  2  hunter2-secret\r\n')
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('hunter2')
  expect(markdown).toContain('typed without echo')
  expect(markdown).toContain('**m3 (1)**\n\n```\n[output not shown: ')
  expect(markdown).toContain('2  [not shown: typed without echo]')
  expect(markdown).toContain('` whoami `')
})

it.each<[string, string, (key: string) => string]>([
  ['concealed, after a prompt with a letter of another script', 'P\u0430ssword: \x1b[8m', (key) => key],
  ['concealed, after a prompt that ends with a concealed dot', 'Password:\x1b[8m.', (key) => key],
  ['concealed, at a prompt of unknown words', 'Losung: \x1b[8m', (key) => key],
  ['black on black, after a black sign', 'Password: \x1b[30;40m#', (key) => key],
  ['black on a dark terminal', 'Password: \x1b[30m#', (key) => `\x1b[30m${key}`],
  [
    'after the cursor is restored with a concealed pen',
    'Say it: \x1b[8m\x1b7\x1b[m',
    (key) => `\x1b8${key}\x1b7\x1b[m`,
  ],
])('never has a password whose echo nobody can see: %s', async (_, prompt, echo) => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('whoami', () => 'me\r\n')
  type('login\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `login\r\n\x1b[?2004l\r${prompt}`)
  for (const key of 'hunter2') {
    type(key)
    for (const host of ['m1', 'm2', 'm3']) await print(host, echo(key))
  }
  type('\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[m\x1b[?2004h${host}# `)
  await run('history', () => '  1  whoami\r\n')
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('hunter2')
  expect(titlesOf(markdown)).toEqual(['` whoami `', '` login `', 'typed without echo', '` history `'])
})

it.each([
  ['the first part, in a shell of another host', 'BzqkLvJ', /Bzqk|kLvJ/],
  ['the first part and more', 'BzqkLvJxyz', /Bzqk|kLvJ/],
])('has no part of a password of which another host got %s', async (_, own, secret) => {
  const { console, prompts, report, type, print, run } = harness()
  await prompts()
  type('./login\r')
  await print('m1', './login\r\n\x1b[?2004l\rPassword: ')
  for (const host of ['m2', 'm3']) await print(host, `./login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  const typed = (hosts: readonly string[], text: string) =>
    console.sessionLog.noteTyped([{ hosts, bytes: Buffer.from(text) }], 0)
  typed(['m1', 'm2'], 'BzqkLvJ')
  await print('m2', 'BzqkLvJ')
  typed(['m2'], own.slice(7))
  await print('m2', own.slice(7))
  typed(['m2'], '\r')
  await print('m2', `\r\n\x1b[?2004l\r-bash: ${own}: command not found\r\n\x1b[?2004hm2# `)
  typed(['m1'], 'wgXhF\r')
  await print('m1', '\r\nwelcome\r\n\x1b[?2004hm1# ')
  await run('true', () => '')
  const { markdown, html } = await report()
  expect(markdown).toContain('welcome')
  expect(markdown + html).not.toMatch(secret)
})

it.each([
  'HqzWkvXjBnP',
  'zWkvXj',
  'vqzWkvXjBnPd',
  'aqzWkb\r\nbXjBnc',
  'Hqz',
])('has no part of a password that a program prints: %s', async (part) => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('./login\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, './login\r\n\x1b[?2004l\rPassword: ')
  type('HqzWkvXjBnPd\r')
  for (const host of ['m1', 'm3']) await print(host, `\r\nwelcome\r\n\x1b[?2004h${host}# `)
  await print('m2', `\r\n${part}\r\n\x1b[?2004hm2# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('welcome')
  // Three characters are not told from other text.
  if (part.length > 3) expect(markdown + html).not.toMatch(/qzWk|zWkv|XjBn/)
  else expect(markdown).toContain(part)
})

it.each([
  ['Ctrl-U', '\x15'],
  ['Backspace', '\x7f'.repeat(10)],
  ['Ctrl-W', '\x17'],
])('hides what was typed at a question and erased with %s, wherever a host prints it', async (_, erase) => {
  for (const end of ['Right-pw77\r', '\x03']) {
    const { prompts, report, type, print, run } = harness()
    await prompts()
    type('./login\r')
    for (const host of ['m1', 'm3']) await print(host, './login\r\n\x1b[?2004l\rPassword: ')
    await print('m2', './login\r\n\x1b[?2004l\r')
    for (const key of ['JLGVt8NdRk', ...erase, end]) type(key)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
    await run('show', (host) => (host === 'm2' ? 'JLGVt8NdRkURight-pw77\r\n' : ''))
    const { markdown } = await report()
    expect(markdown).not.toMatch(/JLGV|NdRk/)
    if (end.length > 1) expect(markdown).not.toContain('Right')
  }
})

it.each<[string, readonly string[], string]>([
  ['a word erased with Ctrl-W, by the kernel', ['Alpha.Bravo7', '\x17', 'Delta9'], 'Alpha.Delta9'],
  ['the same, of several words', ['Winter-2026-Snow', '\x17', 'Rain'], 'Winter-2026-Rain'],
  ['with the cursor moved', ['Alpha7bravo', ...Array(5).fill('\x1b[D'), '\x7f', 'Q'], 'AlphaQbravo'],
  ['with words passed', ['my secret words 77', '\x1bb', '\x1bb', 'X'], 'my secret Xwords 77'],
  ['with characters swapped', ['KiloLima66', ...Array(4).fill('\x02'), '\x14'], 'KiloLmia66'],
  ['with a key that may do anything', ['Oscar.Papa12', '\x19'], 'Oscar.Papa12Quebec'],
])('has no part of a hidden password that was edited: %s', async (_, keys, entered) => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  type('./ask\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, './ask\r\n\x1b[?2004l\rSecret: ')
  for (const key of keys) for (const each of key < ' ' ? [key] : key) type(each)
  type('\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\ngot=${entered}\r\n\x1b[?2004h${host}# `)
  const isKnown = !keys.includes('\x19')
  await run('cat kept', () => (isKnown ? `kept ${entered}\r\n` : 'kept\r\n'))
  const { markdown, html } = await report()
  const parts = entered.match(/[A-Za-z]{3,}/g) ?? []
  for (const part of parts) expect(markdown + html).not.toContain(part)
  expect(markdown).toContain(isKnown ? 'kept [not shown: typed without echo]' : 'kept\n')
  expect(markdown).toContain(isKnown ? 'got=[not shown' : '[output not shown: a line that was not echoed may be')
})

it('hides nothing in what stands for hidden text', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  for (const password of ['typed-in-vain-1', 'typed', 'echo', 'full-screen']) {
    type('sudo true\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, 'sudo true\r\n[sudo] password for me: ')
    type(`${password}\r`)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
  }
  await run('history', () => ' 1 typed-in-vain-1 echo\r\n')
  // Nor in what Muster says itself.
  type('true\r')
  for (const host of ['m1', 'm2', 'm3'])
    await print(host, 'true\r\n\x1b[?2004l\r\x1b[?1049hscreen\x1b[?1049l\x1b[?2004hm1# ')
  const { markdown } = await report()
  expect(markdown).toContain(' 1 [not shown: typed without echo] [not shown: typed without echo]\n')
  expect(markdown).toContain('[a full-screen program ran here]')
})

it.each([
  ['Zx9!topSecret', 'bash: !topSecret: event not found'],
  ['Hunter2;Spring24x', 'bash: Hunter2: command not found\r\nbash: Spring24x: command not found'],
  ['Corr3ct&H0rseX', '[1] 4711\r\nbash: H0rseX: command not found'],
  ['Abc1(defGhi', "bash: syntax error near unexpected token `defGhi'"],
])('has no part of a password that a shell took for a line: %s', async (password, answer) => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  type('sudo true\r')
  for (const host of ['m1', 'm2']) await print(host, 'sudo true\r\n[sudo] password for me: ')
  await print('m3', 'sudo true\r\n\x1b[?2004hm3# ')
  type(`${password}\r`)
  for (const host of ['m1', 'm2']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await print('m3', `${password}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004hm3# `)
  // The shell names its job, and its history has the line.
  await run('true', () => `[1]+  Exit 127                ${password.split(/[!;&(]/)[1]}\r\n${answer}\r\n`)
  const { markdown, html } = await report()
  expect(markdown + html).not.toMatch(/topSecret|Hunter2|Spring24|Corr3ct|H0rse|Abc1|defGhi/)
  expect(markdown).toContain('Exit 127')
})

it('hides what a silent program on one host may have read without echo, although the others show it', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('run it\r')
  for (const host of ['m1', 'm2']) await print(host, `run it\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  await print('m3', 'run it\r\n\x1b[?2004l\r')
  type('hunter22\r')
  for (const host of ['m1', 'm2'])
    await print(host, `hunter22\r\n\x1b[?2004l\rhunter22: not found\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('` run it `')
  expect(markdown + html).not.toContain('hunter22')
  expect(markdown).toContain('not shown: m3 did not echo it')
})

it('hides the hidden answer to a question of a server, which any host may print', async () => {
  const { prompts, run, report, type, console, clock } = harness()
  await prompts()
  const questions = new Questions()
  questions.bind(console, () => {})
  const prompt = [
    { text: 'Password:', isEchoed: false },
    { text: 'Name:', isEchoed: true },
  ]
  const words = { kind: 'keyboard-interactive', title: 'Login', instruction: '', isRetry: false } as const
  const answered = questions.ask({ ...words, hosts: ['m1'], prompts: prompt }, new AbortController().signal)
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(1000)
  type('Quokka77\r')
  type('ada-name\r')
  expect((await answered)?.map((secret) => secret.reveal())).toEqual(['Quokka77', 'ada-name'])
  await run('last', () => 'got Quokka77 of ada-name\r\n')
  const { markdown, html } = await report()
  expect(markdown).toContain('got [not shown: typed without echo] of ada-name')
  expect(markdown + html).not.toContain('Quokka77')
})

it.each([
  ["Q='Aa<b>&\"c'\\''9x'", 'set of a shell'],
  ["Q='Aa<b>&\"c'\"'\"'9x'", 'set of dash'],
  ['declare -- Q="Aa<b>&\\"c\'9x"', 'declare'],
  ['Aa\\<b\\>\\&\\"c\\\'9x', 'printf %q'],
  ['{"q":"Aa<b>&\\"c\'9x"}', 'JSON'],
  ['<i>Aa&lt;b&gt;&amp;"c\'9x</i>', 'HTML'],
  ["?q=Aa%3Cb%3E%26%22c'9x", 'a URL'],
])('hides a password as programs write it: %s (%s)', async (row) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  type('read -s Q\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, 'read -s Q\r\n\x1b[?2004l\r')
  type(`Aa<b>&"c'9x\r`)
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await run('show it', () => `${row}\r\n`)
  const { markdown } = await report()
  expect(markdown).toContain('show it')
  expect(markdown).not.toMatch(/Aa|9x/)
})

describe('a password that shells took for a line', () => {
  const others = ['m2', 'm3']
  /** m1 reads the password without echo, the others at their prompts. They print `answer` then, and `later` after the next line. */
  const reportAfter = async (password: string, answer: string, next: string, later: string) => {
    const { prompts, run, report, type, print } = harness()
    await prompts()
    type('login\r')
    await print('m1', 'login\r\n\x1b[?2004l\rPassword: ')
    for (const host of others) await print(host, `login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    type(`${password}\r`)
    await print('m1', '\r\n\x1b[?2004hm1# ')
    for (const host of others) await print(host, `${password}\r\n\x1b[?2004l\r${answer}`)
    type(`${next}\r`)
    await print('m1', `${next}\r\n\x1b[?2004l\r\x1b[?2004hm1# `)
    for (const host of others) await print(host, `${next}\r\n\x1b[?2004l\r${later}\x1b[?2004h${host}# `)
    await run('uname', () => 'Linux\r\n')
    const { markdown, html } = await report()
    expect(markdown).toContain('Linux')
    return markdown + html
  }

  it.each([
    ["don'tTell9", '\x1b[?2004h> ', "'", "-bash: $'dontTell9\\n': command not found\r\n", /Tell9/],
    ["correct'horse", '\x1b[?2004h> ', "'", "-bash: $'correcthorse\\n': command not found\r\n", /correct|horse/],
    ['Zx9hunter2\\', '\x1b[?2004h> ', 'uptime', '-bash: Zx9hunter2uptime: command not found\r\n', /hunter/],
    ['Kx7!!Qz8mmm', '\x1b[?2004hm2# ', 'history', '    6  Kx7loginQz8mmm\r\n', /Kx7|Qz8/],
    ['Se9cret!1Wor7dy', '\x1b[?2004hm2# ', 'history', '    6  Se9cretloginWor7dy\r\n', /Se9|Wor7/],
    ['my $$Secr3t', '\x1b[?2004hm2# ', 'history', '    6  my 4711Secr3t\r\n', /Secr3t/],
  ])('is hidden with each row that has a part of it: %s', async (password, answer, next, later, secret) => {
    expect(await reportAfter(password, answer, next, later)).not.toMatch(secret)
  })

  it('is hidden as line editors changed it, and in the pieces that were typed', async () => {
    const { prompts, run, report, type, print } = harness()
    await prompts()
    type('login\r')
    await print('m1', 'login\r\n\x1b[?2004l\rPassword: ')
    for (const host of others) await print(host, `login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    for (const [key, shown] of [
      ['olden-Secret7', 'olden-Secret7'],
      ['\x1b[H', '\b'.repeat(13)],
      ['G', '\x1b[1@G'],
      ['\x1b[F', '\x1b[13C'],
      ['x', 'x'],
      ['\r', '\r\n\x1b[?2004l\rnot found\r\n'],
    ] as const) {
      type(key)
      for (const host of others) await print(host, shown)
    }
    await print('m1', '\r\n\x1b[?2004hm1# ')
    for (const host of others) await print(host, `\x1b[?2004h${host}# `)
    await run('history', (host) => (host === 'm1' ? 'olden-Secret7^[[HG^[[Fx\r\n' : '  2  Golden-Secret7x\r\n'))
    const { markdown, html } = await report()
    expect(markdown).toContain('  2  [not shown: typed without echo]')
    expect(markdown + html).not.toMatch(/olden|Secret7/)
  })

  it('does not hide rows that have plain words of a line of several words', async () => {
    const text = await reportAfter('check "$HOME" now', '\x1b[?2004hm2# ', 'ls', 'checksums\r\n')
    expect(text).toContain('checksums')
  })
})

it('hides what a silent program may have read after a question that ends like a prompt', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('true', () => '')
  type('unseal\r')
  await print('m1', 'unseal\r\n\x1b[?2004l\runseal key 1> ')
  for (const host of ['m2', 'm3']) await print(host, `unseal\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  type('zebra88\r')
  for (const host of ['m2', 'm3'])
    await print(host, `zebra88\r\n\x1b[?2004l\rzebra88: not found\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('zebra88')
})

it.each([
  ['FzBGX31nLwRBrX', '-bash: FzBGX31nLwRBrX: command not found'],
  ['correct horse battery', 'fish: Unknown command: correct'],
  ['hunter2', "NameError: name 'hunter2' is not defined"],
])('has no line that one full-screen program got and other shells do not know: %s', async (password, answer) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H+-- Login to vault --+\r\n| ')
  type(`${password}\r`)
  for (const host of ['m2', 'm3']) await print(host, `${password}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004h${host}# `)
  await print('m1', '**\x1b[?1049l\x1b[?2004hm1# ')
  await run('history', (host) => (host === 'm2' ? `  1  ${password}\r\n` : ''))
  const { markdown, html } = await report()
  for (const text of [markdown, html]) expect(text).not.toMatch(new RegExp(password.split(' ').join('|')))
})

it.each([
  ['ls /nope', "ls: cannot access '/nope': No such file or directory"],
  ['grep -c error log', '0\r\nerror: not found in 3 files'],
  ['apt-cache show foo', 'N: Unable to locate package foo\r\nE: No packages found'],
])('has a command that fails while one host has a full-screen program: %s', async (command, answer) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H~\r\n~\r\n')
  type(`${command}\r`)
  for (const host of ['m2', 'm3']) await print(host, `${command}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004h${host}# `)
  await print('m1', '\x1b[?1049l\x1b[?2004hm1# ')
  await run('true', () => '')
  const { markdown } = await report()
  expect(titlesOf(markdown)?.[0]).toBe(`\` ${command} \``)
  expect(markdown).not.toContain('not shown')
})

it('names the host whose full-screen program got a line', async () => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m2', '\x1b[?1049h\x1b[Htext')
  type('uptime\r')
  for (const host of ['m1', 'm3']) await print(host, `uptime\r\n\x1b[?2004l\r up\r\n\x1b[?2004h${host}# `)
  await print('m2', '\x1b[?1049l')
  await run('date', () => 'today\r\n')
  const { markdown, html } = await report()
  expect(markdown).toContain('typed on m\\[1,3\\], not recorded, in a full-screen program: m2\n')
  expect(html).toContain('typed on m[1,3], not recorded, in a full-screen program: m2<')
  expect(markdown).toContain('typed on m\\[1-3\\]\n')
})

it('names the host that echoes nothing, since it hides what was typed into all', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('systemctl restart nfs\r')
  for (const host of ['m1', 'm2']) await print(host, `systemctl restart nfs\r\n\x1b[?2004h${host}# `)
  await print('m3', '\r\nm3# ')
  const { markdown, html } = await report()
  expect(markdown).toContain('not shown: m3 did not echo it')
  expect(markdown).toContain('- m3 echoed nothing: what was typed there is hidden on all hosts')
  expect(html).toContain('not shown: m3 did not echo it')
  expect(markdown + html).not.toContain('systemctl')
})

it('hides a short password where another host showed it, and not where it is part of a word', async () => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await run('seq 3', () => '1\r\n12\r\n123\r\n')
  for (const host of ['m1']) await print(host, '\r\nPIN: ')
  type('1.3\r')
  await print('m1', '\r\n\x1b[?2004hm1# ')
  for (const host of ['m2', 'm3'])
    await print(host, `1.3\r\nbash: 1.3: command not found, 1.35, 103\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown + html).not.toMatch(/1\.3(?!5)/)
  expect(markdown).toContain('**m\\[2-3\\] (2)**\n\n```\n[output not shown: ')
  expect(markdown).toContain('1\n12\n123')
})

it('hides a short password that is typed into tmux on one host, at the prompts of the others', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H[sudo] password for me: ')
  type('abc\r')
  for (const host of ['m2', 'm3']) await print(host, `abc\r\nabc: no such command\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('no such command')
  expect(markdown + html).not.toContain('abc')
})

it('takes a password that is typed into tmux on one host and lands on the prompt of another', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H[sudo] password for me: ')
  type('hunter2-tmux\r')
  for (const host of ['m2', 'm3']) await print(host, `hunter2-tmux\r\nhunter2: no such command\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('[output not shown: ')
  expect(markdown + html).not.toContain('hunter2')
})

it('leaves out half a password at the edge of what is kept', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('cat\r')
  await print('m1', `cat\r\n${'x'.repeat(16 * 1024 - 13)}hunter2-half${'y'.repeat(40_000)}\r\nPassword: `)
  type('hunter2-half\r')
  await print('m1', '\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('left out]')
  expect(markdown).not.toContain('hunter')
})

describe('what is typed in a full-screen program', () => {
  const inTmux = async () => {
    const test = harness()
    await test.prompts()
    test.type('tmux\r')
    for (const host of ['m1', 'm2', 'm3']) await test.print(host, 'tmux\r\n\x1b[?2004l\r\x1b[?1049h\x1b[H$ ')
    const each = async (text: string) => {
      for (const host of ['m1', 'm2', 'm3']) await test.print(host, text)
    }
    const leave = async (shown: string) => {
      test.type('exit\r')
      await each('exit\x1b[?1049l')
      for (const host of ['m1', 'm2', 'm3']) await test.print(host, `[exited]\r\n\x1b[?2004h${host}# `)
      await test.run('cat file', () => `${shown}\r\n`)
      return (await test.report()).markdown
    }
    return { ...test, each, leave }
  }

  it.each([
    'Paste an API key: ',
    'PIN code: ',
    '',
    'key> ',
  ])('is a secret if it is not shown, whatever is asked: %s', async (question) => {
    const { type, each, leave } = await inTmux()
    for (const key of './login') {
      type(key)
      await each(key)
    }
    type('\r')
    await each(`\r\n${question}`)
    for (const key of '0f3a77c1d9e84b52aa10') type(key)
    type('\r')
    await each('\r\n$ ')
    const markdown = await leave('password 0f3a77c1d9e84b52aa10, ./login')
    expect(markdown).toContain('password [not shown: typed without echo], ./login')
    expect(markdown).not.toContain('0f3a')
  })

  it('is none if it is a command that asks for a password', async () => {
    const { type, each, leave } = await inTmux()
    for (const key of 'read -sp "Password: " p; echo; read r') {
      type(key)
      await each(key)
    }
    type('\r')
    await each('\r\nPassword: ')
    for (const key of 'Aster!95-abc') type(key)
    type('\r')
    await each('\r\n$ ')
    const markdown = await leave('then echo; read Aster!95-abc')
    expect(markdown).toContain('then echo; read [not shown: typed without echo]')
  })

  it.each([
    0, 300,
  ])('is a secret if it is shown only after an echo would be: Enter %i ms after the first key', async (ms) => {
    const { type, each, leave, clock } = await inTmux()
    for (const key of 'read -sp "Value: " p; sleep 1; echo $p') {
      type(key)
      await each(key)
    }
    type('\r')
    await each('\r\nValue: ')
    type('Aster!94-abc')
    clock.advance(ms)
    type('\r')
    clock.advance(1000)
    await each('Aster!94-abc\r\n$ ')
    expect(await leave('got Aster!94-abc')).not.toContain('Aster!94-abc')
  })

  it('is none before Enter: keys of an editor are commands', async () => {
    const { prompts, run, type, print, report } = harness()
    await prompts()
    await run('ls', () => 'conf-42.yaml\r\n')
    type('vi file\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, 'vi file\r\n\x1b[?2004l\r\x1b[?1049h\x1b[H')
    type('iconf-42.yaml')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `conf-42.yaml\x1b[?1049l\x1b[?2004h${host}# `)
    const { markdown } = await report()
    expect(markdown).toContain('conf-42.yaml')
    expect(markdown).not.toContain('not shown')
  })

  it.each([
    ['in brackets', '\x1b[?2004h'],
    ['as if typed', ''],
  ])('is none if it is pasted into an editor, which draws the end of it: %s', async (_, mode) => {
    const { prompts, type, print, run, report } = harness()
    await prompts()
    const all = ['m1', 'm2', 'm3']
    const lines = Array.from({ length: 60 }, (_, index) => `    learning_rate_${index} = 0.${index}`)
    type('vim train.py\r')
    for (const host of all) await print(host, `vim train.py\r\n\x1b[?2004l\r\x1b[?1049h${mode}\x1b[H`)
    type('i')
    type(`\x1b[200~${lines.join('\n')}\x1b[201~\x13`)
    for (const host of all) await print(host, `\x1b[H${lines.slice(-20).join('\r\n')}`)
    type('\x1b')
    type(':wq\r')
    for (const host of all) await print(host, `\x1b[?1049l\x1b[?2004h${host}# `)
    await run('cat train.py', () => `${lines.join('\r\n')}\r\n`)
    const { markdown } = await report()
    expect(markdown).not.toContain('not shown')
    for (const line of lines) expect(markdown).toContain(line)
  })

  it.each([
    ['its first line alone', 'ann\r\n'],
    ['nothing', '\r\n'],
  ])('is a secret if it is pasted where two answers are read, and %s is shown', async (_, shown) => {
    const { type, each, leave } = await inTmux()
    for (const key of './login') {
      type(key)
      await each(key)
    }
    type('\r')
    await each('\x1b[?2004h\r\nName: ')
    type('\x1b[200~ann-of-lab\nKiefer!Rot71\x1b[201~\x13')
    await each(shown.replace('ann', 'ann-of-lab'))
    type('\r')
    await each('\r\n$ ')
    expect(await leave('got Kiefer!Rot71')).not.toContain('Kiefer!Rot71')
  })

  it('is none if it is shown, also late, at once, or broken by the edge of the window', async () => {
    const { type, each, leave } = await inTmux()
    const long = 'x'.repeat(50)
    type('uptime -p')
    await each('uptime -p')
    type('\r')
    await each('\r\nup 3 days\r\n$ ')
    // Its echo comes after Enter, in part or as a whole.
    type('hostname')
    await each('host')
    type('\r')
    await each('name\r\nm\r\n$ ')
    type('whoami -x\r')
    await each('whoami -x\r\nann\r\n$ ')
    type(`echo ${long}`)
    await each(`echo ${'x'.repeat(10)}\r\n${'x'.repeat(40)}`)
    type('\r')
    await each('\r\n$ ')
    type('make -j2\nls -la\r')
    await each('make -j2\r\nmade\r\n$ ls -la\r\nfile\r\n$ ')
    // In vi, keys that are commands do not stand in the text.
    type('ihello world')
    await each('hello world')
    type('\r')
    await each('\r\n$ ')
    const shown = `uptime -p, hostname, whoami -x, make -j2, ls -la, ${long}, hello world`
    const markdown = await leave(shown)
    expect(markdown).toContain(shown)
    expect(markdown).not.toContain('not shown')
  })
})

describe('a host that echoes at once', () => {
  /** The three hosts answer each key after some milliseconds. */
  async function fastHosts() {
    const parts = harness()
    const { prompts, print, type, clock } = parts
    await prompts()
    const all = ['m1', 'm2', 'm3']
    const enter = async (line: string, answer: (host: string) => string) => {
      for (const key of line) {
        type(key)
        clock.advance(3)
        for (const host of all) await print(host, key)
      }
      type('\r')
      for (const host of all) await print(host, `\r\n\x1b[?2004l\r${answer(host)}`)
    }
    const end = async (output: string) => {
      for (const host of all) await print(host, `${output}\x1b[?2004h${host}# `)
    }
    return { ...parts, enter, end }
  }

  it.each([
    ['', 300],
    ['Key: ', 300],
    ['Key:\r\n', 300],
    ['', 1400],
  ])('has no echo after Enter: what a program prints then is what it has read (%j, %i ms)', async (question, ms) => {
    const { enter, end, report, type, clock } = await fastHosts()
    await enter('read -s x; echo $x', () => question)
    type('\x1b[200~Tulpe!96xy\x1b[201~')
    clock.advance(ms)
    type('\r')
    await end('Tulpe!96xy\r\n')
    const { markdown, html } = await report()
    expect(markdown).not.toContain('Tulpe!96xy')
    expect(html).not.toContain('Tulpe!96xy')
    expect(markdown).toContain('typed without echo')
  })

  it.each([
    ['typed with Enter at once', 0, 1000],
    ['pasted, Enter soon', 60, 400],
  ])('has no echo a while after Enter: %s', async (_, ms, laterMs) => {
    const { enter, end, report, type, clock } = await fastHosts()
    await enter('read -s x; sleep 1; echo $x', () => 'Value: ')
    type('Rose!97-abc')
    clock.advance(ms)
    type('\r')
    clock.advance(laterMs)
    await end('Rose!97-abc\r\n')
    const { markdown, html } = await report()
    expect(markdown + html).not.toContain('Rose!97-abc')
  })

  it.each(['Value> ', '# '])('may have programs that ask with the sign of a shell: %s', async (question) => {
    const { report, type, print, clock } = harness()
    const all = ['m1', 'm2', 'm3']
    for (const host of all) await print(host, question)
    type('Nelke!98-abc')
    clock.advance(300)
    type('\r')
    clock.advance(1000)
    for (const host of all) await print(host, `\r\nNelke!98-abc\r\n${question}`)
    const { markdown, html } = await report()
    expect(markdown + html).not.toContain('Nelke!98')
  })

  it.each(['\r', ''])('echoes all lines of a paste or none: %j', async (lineEnd) => {
    const { enter, end, report, type, clock } = await fastHosts()
    await enter('read -s a; read -s b; sleep 1; echo "> $b"', () => '')
    type(`first!Tulpe1\rsecond!Rose2${lineEnd}`)
    clock.advance(700)
    if (lineEnd === '') type('\r')
    clock.advance(1000)
    await end('> first!Tulpe1\r\n> second!Rose2\r\n')
    const { markdown, html } = await report()
    expect(markdown + html).not.toMatch(/Tulpe1|Rose2/)
  })

  it('may have a shell without a line editor, or a program that asks first', async () => {
    const { report, type, print, clock } = harness()
    const all = ['m1', 'm2', 'm3']
    for (const host of all) await print(host, 'Code word: ')
    type('Nelke!98-abc')
    clock.advance(500)
    type('\r')
    clock.advance(10)
    for (const host of all) await print(host, 'Nelke!98-abc\r\n# ')
    for (const key of 'stty -echo; read T; stty echo; echo $T') {
      type(key)
      clock.advance(3)
      for (const host of all) await print(host, key)
    }
    type('\r')
    for (const host of all) await print(host, '\r\n')
    type('Tulpe!99-abc')
    clock.advance(200)
    type('\r')
    for (const host of all) await print(host, 'Tulpe!99-abc\r\n# ')
    const { markdown, html } = await report()
    expect(markdown + html).not.toMatch(/Nelke!98|Tulpe!99/)
    expect(markdown).toContain('stty -echo; read T; stty echo; echo $T')
  })

  it('may be slow: what comes after its usual delay from the first key on is no echo', async () => {
    const { report, type, print, clock, prompts } = harness()
    const all = ['m1', 'm2', 'm3']
    await prompts()
    const line = async (text: string) => {
      for (const key of text) {
        type(key)
        clock.advance(160)
        for (const host of all) await print(host, key)
      }
      type('\r')
    }
    await line('read -s x; echo $x')
    for (const host of all) await print(host, '\r\n\x1b[?2004l\r')
    type('Aster!96-abc')
    clock.advance(300)
    type('\r')
    clock.advance(160)
    for (const host of all) await print(host, `Aster!96-abc\r\n\x1b[?2004h${host}# `)
    await line('./ask')
    for (const host of all) await print(host, '\r\n\x1b[?2004l\rName: ')
    type('alpine')
    clock.advance(160)
    type('\r')
    for (const host of all) await print(host, `alpine\r\nfine\r\n\x1b[?2004h${host}# `)
    const { markdown, html } = await report()
    expect(markdown + html).not.toContain('Aster!96-abc')
    expect(markdown).toContain('` alpine `')
  })

  it('has shown the stars of a secret that a program draws in another row later', async () => {
    const { enter, end, print, report, type, clock } = await fastHosts()
    await enter('TERM=vt100 vim', () => '\x1b[24;1H\x1b[K:Key: ')
    for (const key of 'Kastanie-43') {
      type(key)
      clock.advance(60)
      for (const host of ['m1', 'm2', 'm3']) await print(host, '*')
    }
    type('\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, '\x1b[3;1HKastanie-43\x1b[24;1H')
    type(':q!\r')
    await end('\r\n')
    expect((await report()).markdown).not.toContain('Kastanie-43')
  })

  it('shows a secret in no prompt, also where a multiplexer draws what the next line prints with its prompt', async () => {
    const { enter, report, type, print, clock } = await fastHosts()
    await enter('read -s x', () => '')
    type('Zeder!Lila80')
    clock.advance(800)
    type('\r')
    clock.advance(300)
    type('echo $x\r')
    for (const host of ['m1', 'm2', 'm3']) {
      await print(host, `\x1b[?2004h${host}# echo $x\r\n`)
      await print(host, `Zeder!Lila80\r\n${host}# \x1b[?2004l`)
    }
    const { markdown, html } = await report()
    expect(markdown + html).not.toContain('Zeder!Lila80')
  })

  it('may be late with the last keys, and with what was typed at once', async () => {
    const { enter, end, print, report, type, clock } = await fastHosts()
    await enter('./ask', () => 'Name: ')
    type('alp')
    clock.advance(150)
    for (const host of ['m1', 'm2', 'm3']) await print(host, 'alp')
    type('ine')
    clock.advance(10)
    type('\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, 'ine\r\nVersion: ')
    type('edge\r')
    await end('edge\r\ngot it\r\n')
    expect(titlesOf((await report()).markdown)).toEqual(
      ['` ./ask `', '` alpine `', '` edge `'].map((title) => expect.stringContaining(title)),
    )
  })
})
