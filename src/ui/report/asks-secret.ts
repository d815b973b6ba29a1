/** What asks for a password, and what is a prompt instead. Pure. */
import { ASCII } from '../../base/text-width.ts'

/** Words for a password in the translations of login, sudo, su and the like. */
const PASSWORD = [
  'pa(?:ss|ß)(?:wor[dt]|[ -]?phrase|[ -]?code|wd)|passord|pasvorto|pasahitza',
  'kennwort|wachtwoord|adgangskode|kodeord|l[öo]senord|salasana|jelsz[óo]|has[łl]o|heslo|heslá|geslo|lozink[au]|zaporka',
  'mot de passe|contrase[ñn]ya|contrase[ñn]a|contrasenya|contrasinal|\\bclave\\b|\\bsenha\\b|palavra[- ]passe|\\bparol[aeăi]\\b|parolas[ıi]|\\bparool',
  '(?:ş|\\bs)ifre|slapta[žz]od|m[ậa]t kh[ẩa]u|κωδικ|συνθηματικ|парол|лозинк|гасло|סיסמ|كلمة (?:ال)?(?:سر|مرور)|رمز|รหัสผ่าน',
  '密码|密碼|口令|パスワード|パスフレーズ|암호|비밀번호',
].join('|')
/** The end of a line that asks for what must not be shown. */
const ASKS_SECRET = new RegExp(
  `(?:${PASSWORD}|\\bpin\\b|secret|token|\\botp\\b|verification code|credential)[^$#%]{0,80}[:>?：]\\s*$`,
  'iu',
)
/** A line that asks without a colon. What a prompt stands in, or before it, is a command or a directory. */
const NAMES_PASSWORD = new RegExp(`^[^$#%>❯➜»λ]*(?:${PASSWORD})[^$#%>❯➜»λ]{0,80}$`, 'iu')

/** How a shell's prompt ends. */
export const IS_PROMPT = /[$#%>❯➜»λ]$/u

export const HAS_SIGN = /[$#%>❯➜»λ]/u

/** How the last command ended, in prompts of fish and others. */
export const PROMPT_STATUS = /\s?\[(?:\d+|SIG[A-Z]+)(?:\|(?:\d+|SIG[A-Z]+))*\]/g

/** What may precede an echo: typed blanks, or the prompt of a shell that prints the line again, which may stay where it was. */
export const PROMPT = /^(?:.*[$#%>❯➜»λ])? *$/u

/** Shorter secrets would hide half of the report: they are hidden as whole words, and only where they were typed. */
export const SHORTEST_SECRET = 4

/** Letters of other scripts, and the Latin ones that they look like. */
const LOOKALIKES = new Map(
  [
    ['асԁеһіјкӏморѕтѵԝхуАВСЕНІКМОРЅТХУ', 'acdehijklmopstvwxyABCEHIKMOPSTXY'],
    ['αειικνορτυχωΑΒΕΗΙΚΜΝΟΡΤΥΧıɑɡ', 'aeiikvoptuxwABEHIKMNOPTYXiag'],
  ].flatMap(([like = '', latin = '']) => Array.from(like, (letter, index) => [letter, latin[index] ?? ''] as const)),
)

/** The text as it is read: without accents and invisible characters, with Latin letters for those that look like them. */
function asRead(text: string): string {
  if (ASCII.test(text)) return text
  const plain = text.normalize('NFKD').replace(/[\p{M}\p{Cf}]/gu, '')
  return Array.from(plain, (character) => LOOKALIKES.get(character) ?? character).join('')
}

/** Matches `Overwrite? `, `Overwrite [y/N] ` and `Choose (1-3)`, but not the prompts `m1 [~] ` and `[root@m1 src] `. */
const ASKS = /(?:[:?：？]|\p{L} ?[([][\p{L}\p{N}][\p{L}\p{N} ,./|-]{0,40}[)\]])\s*$/u

/** Whether a program without a line editor asks for anything. */
export const asksSomething = (before: string): boolean => ASKS.test(before)

export const asksSecret = (...before: readonly string[]): boolean =>
  before.flatMap((text) => [text, asRead(text)]).some((text) => ASKS_SECRET.test(text) || NAMES_PASSWORD.test(text))
