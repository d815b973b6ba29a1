/** Round-trip times of an idle network, from the output of `pingScript`. Pure. */
import { amountOf } from '../amount.ts'

export type PingResult = {
  readonly from: string
  readonly to: string
  /** Undefined: no answer; perhaps only pings are blocked. */
  readonly minMs?: number
  readonly meanMs?: number
  /** 0 to 1 */
  readonly lostFraction: number
  /** False: a packet of the MTU of both cards does not pass unfragmented. */
  readonly isWhole?: boolean
}

export function parsePings(text: string, from: string, targets: readonly string[]): readonly PingResult[] {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/))
  return targets.flatMap((to, index) => {
    const find = (key: string) => lines.find(([word, number]) => word === key && number === String(index))
    const lost = amountOf(find('loss')?.[2])
    if (lost === undefined) return []
    const [minMs, meanMs] = [2, 3].map((word) => amountOf(find('ping')?.[word]))
    const whole = find('whole')
    return [
      {
        from,
        to,
        lostFraction: Math.min(1, lost / 100),
        ...(minMs === undefined || meanMs === undefined ? {} : { minMs, meanMs }),
        ...(whole === undefined ? {} : { isWhole: whole[2] === 'yes' }),
      },
    ]
  })
}
