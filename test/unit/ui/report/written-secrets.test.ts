/** A password in the forms of shells, JSON, HTML, URLs and base64. */
import { describe, expect, it } from 'vitest'
import { WrittenSecrets } from '../../../../src/ui/report/written-secrets.ts'

const hidden = (secret: string, row: string): string => new WrittenSecrets([secret]).hide(row, '█').replaceAll('█', '#')

describe('a password', () => {
  it.each([
    ['Orca,7!zyx', 'Orca\\,7\\!zyx', '#'],
    ['Orca,7!zyx', 'http://me:Orca%2C7%21zyx@proxy/', 'http://me:#@proxy/'],
    ['münd-Öl42', '["m\\u00fcnd-\\u00d6l42"]', '["#"]'],
    ['münd-Öl42', "Q=$'m\\303\\274nd-\\303\\226l42'", "Q=$'#'"],
    ['münd-Öl42', "'m'$'\\303\\274''nd-'$'\\303\\226''l42'", "'#'"],
    ["a''bcd", "q='a'\"''\"'bcd'", "q='#'"],
    ["it's me", "q='it'\\''s me'", "q='#'"],
    ["isn't", 'isn&#x27;t isn&#39;t isn&apos;t', '# # #'],
    ['a<b>&"c', '<i>a&lt;b&gt;&amp;&quot;c</i>', '<i>#</i>'],
    ['a"b\\cd', '{"q":"a\\"b\\\\cd"}', '{"q":"#"}'],
    ['a"b\\cd', '"{\\"q\\":\\"a\\\\\\"b\\\\\\\\cd\\"}"', '"{\\"q\\":\\"#\\"}"'],
    ['two words', '?q=two+words&r=two%20words', '?q=#&r=#'],
    ['a\'b"c$d', `a\\'b\\"c\\$d`, '#'],
    ['pass😀word', '"pass\\ud83d\\ude00word"', '"#"'],
    ['hunter22', 'password: aHVudGVyMjI=', 'password: #'],
    ['hunter22', 'aHVudGVyMjIK', '#'],
    ['Lima,8!qrs', 'cm9vdDpMaW1hLDghcXJz', 'cm9vd#'],
    ['Lima,8!qrs', 'auth: YWRhOkxpbWEsOCFxcnM= x', 'auth: YWRh# x'],
    ['Lima,8!qrs', 'bWU6TGltYSw4IXFycw==', 'bW#'],
    ['a?>b?>c?>', 'YT8-Yj8-Yz8-', '#'],
    ['ab\\101cd-Pq', '"ab\\\\101cd-Pq"', '"#"'],
    ["it'\\101x9Qz", "PW='it'\\''\\101x9Qz'", "PW='#'"],
    ['Gt$%20y!z9', 'Gt\\$%20y\\!z9', '#'],
    ["o'k9", "PW='o'\\''k9'", "PW='#'"],
    ['a\'b"c', 'a\\\'b\\"c', '#'],
    ['"$k9"', '\\"\\$k9\\"', '#'],
    ['hunter22', 'hunter22 hunter 22', '# hunter 22'],
    ["don'tTell9", "-bash: $'dontTell9\\n': command not found", "-bash: $'#\\n': command not found"],
  ])('%s is found in %s', (secret, row, rest) => {
    expect(hidden(secret, row)).toBe(rest)
  })
})

describe('a part of a password', () => {
  const hiddenIn = (secret: string, row: string): string =>
    new WrittenSecrets([secret], [secret]).hide(row, '█').replaceAll('█', '#')

  it.each([
    ['qwerty-Moon77', '-bash: werty-Moon77: command not found', '-bash: #: command not found'],
    ['qwerty-Moon77', '  12  y-Moon77 Moon77 xon77x n77', '  12  # # x#x n77'],
    ['q$werty-Moon77', '-bash: \\werty-Moon77: command not found', '-bash: \\#: command not found'],
    ['HqzWkvXjBnPd', 'HqzWkvXjBnP zWkvXj vqzWkvXjBnPd azjzV', '# # v# azjzV'],
    ['HqzWkvXjBnPd', 'bXjBnb WkvX', 'b#b #'],
    ['tangerine-Mq7', 'bash: tangerine: not found; tanger tangerines', 'bash: #: not found; # tangerines'],
    ['hqzwkvxjbnpd', 'vqzwkvxjbnpd hqzwkv zwkv', 'v# # #'],
    ['sunflower', 'flow flowed sunflowe', '# flowed #'],
    ['2024Spring!', '2024-01-02 12024 2024Sp', '2024-01-02 12024 #'],
    ['482913', 'x 4829 48291 14829', 'x # # 14829'],
    [
      'put the keys in the box',
      'import this; return the current in the keys',
      'import this; return the current in the#',
    ],
    ['correct horse battery', 'Object Notation; a horse; rect horse batt', 'Object Notation; a#; #'],
    ['q cd/Xy7', '-bash: cd/Xy7: No such file', '-bash:#: No such file'],
  ])('%s is found in %s', (secret, row, rest) => {
    expect(hiddenIn(secret, row)).toBe(rest)
  })

  it('of what is no password is not', () => {
    expect(hidden('systemctl restart nfs', 'systemctl restart; ctl restart nfs')).toBe(
      'systemctl restart; ctl restart nfs',
    )
  })
})
