/** The questions of the system's ssh as it words them (readpassphrase prompts of openssh-portable), made into data. Pure. */
import type { NewHostKey } from '../host-keys.ts'

export type AskpassQuestion =
  | { readonly kind: 'host-key'; readonly key: NewHostKey }
  | { readonly kind: 'passphrase'; readonly keyFile: string }
  /** `user`: `user@host`, as ssh names the account. */
  | { readonly kind: 'password'; readonly user: string }
  | { readonly kind: 'prompt'; readonly text: string; readonly isEchoed: boolean }
  /** Nothing to answer: touch the security key. */
  | { readonly kind: 'notice'; readonly text: string }
  /** An answer of ours was not understood: never answered by guessing. */
  | { readonly kind: 'refuse' }

/** `promptKind` is SSH_ASKPASS_PROMPT (ssh(1), ENVIRONMENT): `confirm`, `none`, or not set. */
export function parseAskpassQuestion(host: string, text: string, promptKind: string | undefined): AskpassQuestion {
  if (promptKind === 'none') return { kind: 'notice', text }
  // A server's questions begin like this (since OpenSSH 8.5).
  if (/^\([^()\s]*@[^()\s]*\) /.test(text)) return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
  if (text.startsWith("Please type 'yes'")) return { kind: 'refuse' }
  if (/\(yes\/no(\/\[fingerprint\])?\)\?/.test(text)) {
    const key = newHostKey(host, text)
    return key === undefined ? { kind: 'refuse' } : { kind: 'host-key', key }
  }
  const passphrase = /^Enter passphrase for (?:key )?'?(.*?)'?: ?$/.exec(text)
  if (passphrase?.[1] !== undefined) return { kind: 'passphrase', keyFile: passphrase[1] }
  const password = /^([^()\n]*)'s password: ?$/.exec(text)
  if (password?.[1] !== undefined) return { kind: 'password', user: password[1] }
  return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
}

function newHostKey(host: string, text: string): NewHostKey | undefined {
  const lookupName = /^The authenticity of host '([^'\s]+)/m.exec(text)?.[1]
  const [, algorithm, fingerprint] = /^(\S+) key fingerprint is (\S+?)\.?$/m.exec(text) ?? []
  if (lookupName === undefined || algorithm === undefined || fingerprint === undefined) return undefined
  return { host, lookupName, algorithm, fingerprint }
}
