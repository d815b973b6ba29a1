/**
 * The host key verifier on known_hosts files: known, changed, revoked, or new and therefore reviewed by the user, all new
 * keys that wait at that moment together. Fails closed; it never removes or replaces a line.
 */
import { type Clock, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { HostKeyReviewer, HostKeyVerdict, HostKeyVerifier } from '../host-keys.ts'
import { KnownHostsFiles } from './files.ts'
import { judgeHostKey, knownAlgorithms, lookupNameOf } from './judge.ts'
import { fingerprintOf, keyTypeOf, keyTypeTitle } from './key-blob.ts'
import type { KnownHostsEntry } from './parse.ts'
import { ReviewQueue } from './review-queue.ts'

export type HostKeyVerifierOptions = {
  /** Who decides about new keys when ssh_config says `ask`; undefined: nobody, so they are refused. */
  readonly reviewer?: HostKeyReviewer
  readonly clock?: Clock
  /** A new key was accepted but could not be recorded: printable, one line. */
  onWarning?(message: string): void
}

export function createHostKeyVerifier(options: HostKeyVerifierOptions = {}): HostKeyVerifier {
  const files = new KnownHostsFiles()
  const reviews =
    options.reviewer === undefined ? undefined : new ReviewQueue(options.reviewer, options.clock ?? systemClock)
  const namingFor = (endpoint: Endpoint) => files.read([...endpoint.knownHostsFiles, ...endpoint.globalKnownHostsFiles])

  const record = async (endpoint: Endpoint, key: Uint8Array): Promise<void> => {
    const file = endpoint.knownHostsFiles[0]
    if (file === undefined || file === 'none') return
    try {
      await files.add(file, lookupNameOf(endpoint), key, endpoint.hashKnownHosts)
    } catch (error) {
      options.onWarning?.(messageOf(error))
    }
  }

  const verdictOnNewKey = async (endpoint: Endpoint, key: Uint8Array, signal: AbortSignal): Promise<HostKeyVerdict> => {
    const shown = describeKey(endpoint, key)
    switch (endpoint.strictHostKeyChecking) {
      case 'yes':
        return {
          ok: false,
          reason: `${shown} is not in known_hosts, and StrictHostKeyChecking is yes`,
          hint: `Compare the fingerprint with the machine's own, then connect once with ssh -o StrictHostKeyChecking=ask ${printable(endpoint.host)}.`,
        }
      case 'accept-new':
      case 'no':
        await record(endpoint, key)
        return { ok: true }
      case 'ask':
        if (reviews === undefined) {
          return {
            ok: false,
            reason: `${shown} is not in known_hosts, and nobody is there to ask`,
            hint: 'Open the console once to review new keys, or set StrictHostKeyChecking accept-new for these hosts.',
          }
        }
        if (!(await reviews.ask(endpoint, key, signal))) {
          return { ok: false, reason: `${shown} was not accepted`, hint: 'Reconnect to review the key again.' }
        }
        await record(endpoint, key)
        return { ok: true }
    }
  }

  return {
    async verify(endpoint, key, signal) {
      const judgement = judgeHostKey(await namingFor(endpoint), endpoint, key)
      switch (judgement.kind) {
        case 'known':
          return { ok: true }
        case 'changed':
          return changed(endpoint, key, judgement.offending)
        case 'revoked':
          return {
            ok: false,
            reason: `${describeKey(endpoint, key)} is marked as revoked in ${placeOf(judgement.entry)}: it may have been stolen`,
            hint: 'Ask who runs the machine for its new key.',
          }
        case 'authority-only':
          return {
            ok: false,
            reason: `${describeKey(endpoint, key)} is no certificate, and ${placeOf(judgement.entry)} trusts only certificates of its authority`,
            hint: `Set \`transport: openssh\` for ${printable(endpoint.host)}: the built-in transport cannot check host certificates.`,
          }
        case 'unknown':
          return verdictOnNewKey(endpoint, key, signal)
      }
    },
    async preferredAlgorithms(endpoint) {
      return knownAlgorithms(await namingFor(endpoint), endpoint)
    },
  }
}

function changed(endpoint: Endpoint, key: Uint8Array, offending: KnownHostsEntry): HostKeyVerdict {
  const old = `${keyTypeTitle(offending.keyType)} ${fingerprintOf(offending.blob)}`
  return {
    ok: false,
    reason: `the host key has changed: ${describeKey(endpoint, key)}, but ${placeOf(offending)} has ${old}; somebody may be listening in`,
    hint: `If the machine was set up anew, forget the old key with: ssh-keygen -f ${quote(offending.file)} -R ${quote(lookupNameOf(endpoint))}`,
  }
}

function describeKey(endpoint: Endpoint, key: Uint8Array): string {
  return `the ${keyTypeTitle(keyTypeOf(key) ?? 'unreadable')} key ${fingerprintOf(key)} of ${printable(lookupNameOf(endpoint))}`
}

function placeOf(entry: KnownHostsEntry): string {
  return `${printable(entry.file)}:${entry.line}`
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${printable(text).replaceAll("'", "'\\''")}'`
}
