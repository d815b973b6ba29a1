import { describe, expect, it } from 'vitest'
import { BorrowedChannel } from '../../../../src/ssh/persist/keeper-client.ts'
import { FRAME_KINDS, type KeeperLink } from '../../../../src/ssh/persist/link.ts'
import type { FromKeeper, ToKeeper } from '../../../../src/ssh/persist/messages.ts'

function openChannel() {
  const calls: string[] = []
  const link = { send: () => {}, sendBytes: () => {}, sendCredit: () => {} } as unknown as KeeperLink<
    FromKeeper,
    ToKeeper
  >
  const channel = new BorrowedChannel(
    1,
    link,
    {
      onBytes: (_kind, bytes) => calls.push(Buffer.from(bytes).toString()),
      onDrain: () => calls.push('drain'),
      onEnd: ({ kind }) => calls.push(kind),
    },
    () => calls.push('over'),
  )
  return { channel, calls }
}

describe('a borrowed channel', () => {
  it('calls no handler before its opener has returned, though everything comes in one piece', async () => {
    const { channel, calls } = openChannel()
    const opened = channel.opened.promise.then(() => calls.push('opened'))
    channel.handleOpened()
    channel.handleBytes(FRAME_KINDS.stdout, Buffer.from('bytes'))
    channel.handleEnd({ kind: 'exit', code: 0 })
    await opened
    await new Promise(setImmediate)
    expect(calls).toEqual(['opened', 'bytes', 'over', 'exit'])
  })

  it('delivers nothing if the opener pauses it at once', async () => {
    const { channel, calls } = openChannel()
    channel.handleOpened()
    channel.handleBytes(FRAME_KINDS.stdout, Buffer.from('bytes'))
    channel.pause()
    await new Promise(setImmediate)
    expect(calls).toEqual([])
    channel.resume()
    expect(calls).toEqual(['bytes'])
  })

  it('rejects if it is lost before it is open, and reports no end', async () => {
    const { channel, calls } = openChannel()
    channel.handleLoss('gone')
    await expect(channel.opened.promise).rejects.toThrow('gone')
    expect(calls).toEqual(['over'])
  })
})
