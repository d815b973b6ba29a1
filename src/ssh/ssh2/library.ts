/** The ssh2 package. Only this file reaches into its fields: its version is pinned and bundled, and tests fail with another one. */
import {
  type CipherGCMTypes,
  createDecipheriv,
  createSecretKey,
  type DecipherGCM,
  type KeyObject,
  randomFillSync,
} from 'node:crypto'
import type { Duplex } from 'node:stream'
import ssh2, { type ClientChannel, type Client as Ssh2Client } from 'ssh2'

export const { Client, BaseAgent, OpenSSHAgent, utils } = ssh2

type Protocol = {
  session(localChannel: number, initialWindow: number, maxPacket: number): unknown
  channelData(remoteChannel: number, bytes: Buffer): unknown
  channelWindowAdjust(remoteChannel: number, amount: number): unknown
  signal(remoteChannel: number, name: string): unknown
  requestFailure(): unknown
  channelOpenFail(remoteChannel: number, reason: number, words: string): unknown
  _onHandshakeComplete(...details: unknown[]): unknown
  _cipher: Cipher
  _decipher: Decipher
  readonly _handlers: {
    DISCONNECT(protocol: unknown, reason: number, words: string): unknown
    USERAUTH_FAILURE(protocol: unknown, methods: string[], isPartial: boolean): unknown
    USERAUTH_INFO_REQUEST(protocol: unknown, name: string, instructions: string, prompts: readonly unknown[]): unknown
    GLOBAL_REQUEST(protocol: unknown, name: string, wantsReply: boolean, data: unknown): unknown
    CHANNEL_OPEN(protocol: Protocol, channel: { readonly sender: number }): unknown
    CHANNEL_DATA(protocol: unknown, channel: number, data: Buffer): unknown
    CHANNEL_EXTENDED_DATA(protocol: unknown, channel: number, data: Buffer, type: number): unknown
  }
}

/** Keys that ssh2 hands to `createCipheriv` and `createHmac` with every packet. */
const PACKET_KEYS = [
  '_encKey',
  '_decipherKey',
  '_macKey',
  '_encKeyMain',
  '_encKeyPktLen',
  '_decKeyMain',
  '_decKeyPktLen',
] as const

type Cipher = {
  readonly _encSSLName?: string
  allocPacket: (payloadBytes: number) => Buffer
  encrypt: (packet: Buffer) => unknown
  _onWrite: (piece: Buffer) => unknown
} & { [name in (typeof PACKET_KEYS)[number]]?: Buffer | KeyObject }

type Decipher = Cipher & {
  inSeqno: number
  readonly _decipherSSLName?: string
  readonly _decipherIV: Buffer
  /** Returns where it stopped, if a packet ended the reading of these bytes. */
  decrypt: (data: Uint8Array, from: number, to: number) => number | undefined
  readonly _onPayload: (payload: Buffer) => number | false | undefined
}

type Unread = { readonly readableLength?: number }

type Channels = {
  /** With those that wait for an answer, and those that only this side has closed. */
  readonly _count: number
  get(id: number): (Unread & { readonly stderr?: Unread }) | boolean | (() => void) | undefined
}

type Inside = {
  readonly _protocol: Protocol
  readonly _remoteVer?: string
  readonly _chanMgr: Channels
  /** Forgets the keep-alives that were not answered. */
  _resetKA(): void
}

type ChannelInside = {
  readonly incoming: { window: number }
  readonly outgoing: { readonly id: number; readonly state: string; readonly packetSize: number; window: number }
}

const protocolOf = (client: Ssh2Client): Protocol => (client as unknown as Inside)._protocol

/** What the server calls itself: `OpenSSH_9.2p1`; undefined before its banner. */
export function serverVersion(client: Ssh2Client): string | undefined {
  return (client as unknown as Inside)._remoteVer
}

/** With so many channels, no more that the server opens are accepted: it may never close them. */
const MOST_CHANNELS = 256
/** Twice the largest window of a channel. */
const MOST_UNREAD_BYTES = 4 * 1024 * 1024
/** RFC 4254, section 5.1. */
const RESOURCE_SHORTAGE = 4

/** Bounds what the server may open and send, which ssh2 itself would keep. Calls back when it sends more than the windows allow. */
export function limitServer(client: Ssh2Client, onExceeded: () => void): void {
  const handlers = protocolOf(client)._handlers
  const openChannel = handlers.CHANNEL_OPEN
  handlers.CHANNEL_OPEN = (protocol, channel) =>
    (client as unknown as Inside)._chanMgr._count >= MOST_CHANNELS
      ? protocol.channelOpenFail(channel.sender, RESOURCE_SHORTAGE, '')
      : openChannel(protocol, channel)
  const check = (id: number) => {
    const channel = (client as unknown as Inside)._chanMgr.get(id)
    if (typeof channel !== 'object') return
    if ((channel.readableLength ?? 0) + (channel.stderr?.readableLength ?? 0) > MOST_UNREAD_BYTES) onExceeded()
  }
  const { CHANNEL_DATA: takeData, CHANNEL_EXTENDED_DATA: takeExtended } = handlers
  handlers.CHANNEL_DATA = (protocol, id, data) => {
    takeData(protocol, id, data)
    check(id)
  }
  handlers.CHANNEL_EXTENDED_DATA = (protocol, id, data, type) => {
    takeExtended(protocol, id, data, type)
    check(id)
  }
}

/**
 * Any bytes show that the server is alive. ssh2 itself counts only answers to its keep-alives, which on a slow link come
 * minutes later, behind the data of a copy.
 */
export function keepWhileHeard(client: Ssh2Client, stream: Duplex, intervalMs: number): void {
  if (intervalMs === 0) return
  let resetAtMs = performance.now()
  stream.on('data', () => {
    const nowMs = performance.now()
    if (nowMs - resetAtMs < intervalMs / 2) return
    resetAtMs = nowMs
    ;(client as unknown as Inside)._resetKA()
  })
}

/** `open` asks for a session channel, whose window becomes `windowBytes` in place of ssh2's 2 MB; then call `consumeWith` on it. */
export function withSessionWindow(client: Ssh2Client, windowBytes: number, open: () => void): void {
  const protocol = protocolOf(client)
  const original = protocol.session
  protocol.session = (localChannel, _initialWindow, maxPacket) =>
    original.call(protocol, localChannel, windowBytes, maxPacket)
  try {
    open()
  } finally {
    protocol.session = original
  }
}

/** ssh2 never opens the window of this channel again; the returned function does, once half of it was consumed. */
export function consumeWith(client: Ssh2Client, channel: ClientChannel, windowBytes: number): (bytes: number) => void {
  const { incoming, outgoing } = channel as unknown as ChannelInside
  const protocol = protocolOf(client)
  // Far above the threshold below which ssh2 would announce room for its own 2 MB.
  incoming.window = Number.MAX_SAFE_INTEGER
  let consumed = 0
  return (bytes) => {
    consumed += bytes
    if (consumed < windowBytes / 2 || (outgoing.state !== 'open' && outgoing.state !== 'eof')) return
    const amount = consumed
    consumed = 0
    protocol.channelWindowAdjust(outgoing.id, amount)
  }
}

/**
 * Sends bytes past the channel's stream, whose callbacks cost about as much as a packet. False: not sent, since earlier bytes wait
 * in the stream, or these are more than fits in a packet or the window.
 */
export function sendAtOnce(client: Ssh2Client, channel: ClientChannel, bytes: Uint8Array): boolean {
  const { outgoing } = channel as unknown as ChannelInside
  const most = Math.min(outgoing.packetSize, outgoing.window)
  if (outgoing.state !== 'open' || channel.writableLength > 0 || bytes.length > most) return false
  outgoing.window -= bytes.length
  protocolOf(client).channelData(outgoing.id, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  return true
}

/** Calls back with what each refusal of the server still allows. ssh2 itself forgets it for keys of an agent. */
export function watchRefusals(client: Ssh2Client, onRefused: (methods: readonly string[], isPartial: boolean) => void) {
  const handlers = protocolOf(client)._handlers
  const original = handlers.USERAUTH_FAILURE
  handlers.USERAUTH_FAILURE = (protocol, methods, isPartial) => {
    onRefused(methods, isPartial)
    return original(protocol, methods, isPartial)
  }
}

/** Calls back when the server says that it disconnects, with its words. ssh2 itself then waits until it closes the socket. */
export function watchDisconnect(client: Ssh2Client, onDisconnect: (words: string) => void) {
  const handlers = protocolOf(client)._handlers
  const original = handlers.DISCONNECT
  handlers.DISCONNECT = (protocol, reason, words) => {
    original(protocol, reason, words)
    onDisconnect(words)
  }
}

/** Calls back with the words of a keyboard-interactive round that asks nothing. ssh2 itself answers it and drops them. */
export function watchRoundsWithoutPrompts(client: Ssh2Client, onWords: (name: string, instructions: string) => void) {
  const handlers = protocolOf(client)._handlers
  const original = handlers.USERAUTH_INFO_REQUEST
  handlers.USERAUTH_INFO_REQUEST = (protocol, name, instructions, prompts) => {
    if (prompts.length === 0) onWords(name, instructions)
    return original(protocol, name, instructions, prompts)
  }
}

/** ssh2 has each host key that OpenSSH announces after the login proved: a third of the server's work, for nothing used here. */
export function ignoreAnnouncedHostKeys(client: Ssh2Client): void {
  const protocol = protocolOf(client)
  const handlers = protocol._handlers
  const original = handlers.GLOBAL_REQUEST
  handlers.GLOBAL_REQUEST = (self, name, wantsReply, data) => {
    if (name !== 'hostkeys-00@openssh.com') return original(self, name, wantsReply, data)
    return wantsReply ? protocol.requestFailure() : undefined
  }
}

/** ssh2's own `signal` does nothing once stdin has ended. Throws on a name that SSH does not have. */
export function signalChannel(client: Ssh2Client, channel: ClientChannel, name: string): void {
  const { outgoing } = channel as unknown as ChannelInside
  if (outgoing.state === 'open' || outgoing.state === 'eof') protocolOf(client).signal(outgoing.id, name)
}

/**
 * A cipher takes 2 µs with a key object, 10 µs with a raw key; one write a packet and one question for random bytes in hundreds are
 * enough. Long packets are taken, too. Call it before the handshake.
 */
export function refinePackets(client: Ssh2Client): void {
  const protocol = protocolOf(client)
  const original = protocol._onHandshakeComplete
  protocol._onHandshakeComplete = (...details) => {
    for (const cipher of [protocol._cipher, protocol._decipher]) parseKeysOnce(cipher)
    writePacketsWhole(protocol._cipher)
    padFromStore(protocol._cipher)
    takeLongPackets(protocol._decipher)
    return original(...details)
  }
}

function parseKeysOnce(cipher: Cipher): void {
  for (const name of PACKET_KEYS) {
    const key = cipher[name]
    if (Buffer.isBuffer(key)) cipher[name] = createSecretKey(key)
  }
}

function writePacketsWhole(cipher: Cipher): void {
  const { encrypt, _onWrite: write } = cipher
  let pieces: Buffer[] = []
  cipher._onWrite = (piece) => pieces.push(piece)
  cipher.encrypt = (packet) => {
    encrypt.call(cipher, packet)
    const whole = pieces
    pieces = []
    const [first] = whole
    if (first !== undefined) write(whole.length === 1 ? first : Buffer.concat(whole))
  }
}

const padding = Buffer.alloc(4096)
let paddingUsed = padding.length

/** Random bytes that no other packet gets. */
function writePadding(packet: Buffer, at: number): void {
  const bytes = packet.length - at
  if (paddingUsed + bytes > padding.length) {
    randomFillSync(padding)
    paddingUsed = 0
  }
  padding.copy(packet, at, paddingUsed, paddingUsed + bytes)
  paddingUsed += bytes
}

/** RFC 4253, section 6: padding of 4 bytes or more. AES-GCM (RFC 5647) does not count the length field into the blocks of 16. */
function padFromStore(cipher: Cipher): void {
  if (cipher._encSSLName?.endsWith('-gcm') !== true) return
  cipher.allocPacket = (payloadBytes) => {
    const packetBytes = Math.ceil((1 + payloadBytes + 4) / 16) * 16
    const packet = Buffer.allocUnsafe(4 + packetBytes)
    packet.writeUInt32BE(packetBytes, 0)
    packet[4] = packetBytes - 1 - payloadBytes
    writePadding(packet, 5 + payloadBytes)
    return packet
  }
}

/** Linux keeps up to 640 KB for a terminal whose program does not read (TTYB_DEFAULT_MEM_LIMIT in tty_buffer.c). */
const MOST_PACKET_BYTES = 1024 * 1024
const TAG_BYTES = 16

/**
 * ssh2 ends the connection at a packet of more than 35,000 bytes. OpenSSH sends such a one when a terminal without echo takes a
 * long paste: noise that hides whether there was an echo (`channel_handle_wfd` in its channels.c). For AES-GCM (RFC 5647), which
 * servers choose unless they are forbidden to.
 */
function takeLongPackets(decipher: Decipher): void {
  const { _decipherSSLName: algorithm, _decipherKey: key, _decipherIV: iv } = decipher
  if (algorithm?.endsWith('-gcm') !== true || key === undefined) return
  const header = Buffer.alloc(4)
  const tag = Buffer.alloc(TAG_BYTES)
  let [headerBytes, bodyBytes, tagBytes] = [0, 0, 0]
  let packetBytes = 0
  let gcm: DecipherGCM
  let body: Buffer = header
  decipher.decrypt = (data, from, to) => {
    const bytes = Buffer.from(data.buffer, data.byteOffset, to)
    let at = from
    while (at < to) {
      if (headerBytes < header.length) {
        const taken = bytes.copy(header, headerBytes, at)
        headerBytes += taken
        at += taken
        if (headerBytes < header.length) return undefined
        packetBytes = header.readUInt32BE()
        if (packetBytes > MOST_PACKET_BYTES || packetBytes < 16 || packetBytes % 16 !== 0)
          throw new Error('Bad packet length')
        gcm = createDecipheriv(algorithm as CipherGCMTypes, key, iv)
        gcm.setAAD(header)
        bodyBytes = 0
        tagBytes = 0
      }
      if (bodyBytes < packetBytes) {
        const part = gcm.update(bytes.subarray(at, at + packetBytes - bodyBytes))
        if (part.length === packetBytes) body = part
        else {
          if (bodyBytes === 0) body = Buffer.allocUnsafe(packetBytes)
          part.copy(body, bodyBytes)
        }
        bodyBytes += part.length
        at += part.length
      }
      const taken = bytes.copy(tag, tagBytes, at, at + TAG_BYTES - tagBytes)
      tagBytes += taken
      at += taken
      if (tagBytes < TAG_BYTES) return undefined
      gcm.setAuthTag(tag)
      gcm.final()
      headerBytes = 0
      decipher.inSeqno = (decipher.inSeqno + 1) >>> 0
      // Section 7.1: the last eight bytes count the packets.
      iv.writeBigUInt64BE(BigInt.asUintN(64, iv.readBigUInt64BE(4) + 1n), 4)
      const end = decipher._onPayload(body.subarray(1, packetBytes - (body[0] ?? 0)))
      if (end !== undefined) return end === false ? at : end
    }
    return undefined
  }
}
