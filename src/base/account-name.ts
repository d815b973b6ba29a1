/** Whose account this is. */
import { userInfo } from 'node:os'

/** Its number where it has no name, as in a container. */
export function accountName(): string {
  try {
    return userInfo().username
  } catch {
    return process.env.USER ?? String(process.getuid?.() ?? 'somebody')
  }
}
