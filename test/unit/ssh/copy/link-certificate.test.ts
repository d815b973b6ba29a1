import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createLinkCertificate, type LinkCertificate } from '../../../../src/ssh/copy/links.ts'

/** What both ends do with it: they show it, and take nothing else. */
const options = ({ certificate, key }: LinkCertificate) => ({ cert: certificate, key, ca: certificate })

describe('the certificate of a link', () => {
  it('is self-signed, valid for any clock, and new each time', () => {
    const { certificate } = createLinkCertificate()
    const parsed = new X509Certificate(certificate)
    expect(parsed.verify(parsed.publicKey)).toBe(true)
    expect([parsed.validFromDate.getUTCFullYear(), parsed.validToDate.getUTCFullYear()]).toEqual([2000, 9999])
    expect(createLinkCertificate().certificate).not.toBe(certificate)
  })

  it.each([
    ['lets in who has its key', (own: LinkCertificate) => options(own), 'in'],
    ['keeps out who shows another', () => ({ ...options(createLinkCertificate()), rejectUnauthorized: false }), 'out'],
    ['keeps out who shows none', () => ({ rejectUnauthorized: false }), 'out'],
  ])('%s', async (_what, clientOptions, expected) => {
    const own = createLinkCertificate()
    const server = createServer({ ...options(own), requestCert: true, rejectUnauthorized: true })
    const outcome = new Promise<string>((resolve) => {
      server.once('secureConnection', () => resolve('in'))
      server.once('tlsClientError', () => resolve('out'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const checkServerIdentity = () => undefined
    const socket: TLSSocket = connect({ ...clientOptions(own), port, host: '127.0.0.1', checkServerIdentity })
    socket.on('error', () => {})
    expect(await outcome).toBe(expected)
    socket.destroy()
    server.close()
  })
})
