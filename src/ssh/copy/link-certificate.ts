/**
 * A key and a self-signed certificate for one link between two hosts; both ends hold both and trust nothing else. Node can sign but
 * not make certificates, so this file encodes the DER (RFC 5280, RFC 5480).
 */
import { generateKeyPairSync, sign } from 'node:crypto'

export type LinkCertificate = { readonly certificate: string; readonly key: string }

export function createLinkCertificate(): LinkCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'))
  // CN=muster
  const name = sequence(tagged(0x31, sequence(Buffer.from('0603550403', 'hex'), tagged(0x0c, Buffer.from('muster')))))
  // Valid from 2000 to 9999: clocks of hosts may be wrong, and the key is used for one copy only.
  const validity = sequence(tagged(0x17, Buffer.from('000101000000Z')), tagged(0x18, Buffer.from('99991231235959Z')))
  const content = sequence(
    tagged(0xa0, Buffer.from([2, 1, 2])),
    Buffer.from([2, 1, 1]),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = sign('sha256', content, privateKey)
  const der = sequence(content, ecdsaWithSha256, tagged(0x03, Buffer.from([0]), signature))
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts)
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
