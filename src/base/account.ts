/** The user's account. Its number may have no name and no home directory, as in a container. */
import { userInfo } from 'node:os'

export type Account = { readonly name: string; readonly uid: number; readonly home: string }

/** `ask`: queries the system; throws if the number has no name. */
export function currentAccount(ask = userInfo, environment = process.env): Account {
  try {
    const { username, uid, homedir } = ask()
    return { name: username, uid, home: homedir }
  } catch {
    const { USER, HOME } = environment
    const uid = process.getuid?.() ?? -1
    return { name: USER ?? (uid < 0 ? 'unknown' : String(uid)), uid, home: HOME || '/' }
  }
}

export const accountName = (): string => currentAccount().name
