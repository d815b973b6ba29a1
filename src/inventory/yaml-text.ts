/** Pieces of hosts.yaml as text that every YAML reader takes for the same. */

// Words that YAML, of this version or an older one, takes for something else than text.
const NOT_TEXT = /^(?:true|false|null|yes|no|on|off|y|n|~|[-+.]?\d.*)$/i

/** A scalar: plain where that is safe everywhere, else in double quotes (JSON's strings are YAML's). */
export function formatScalar(text: string): string {
  const isAddress = /^\d+\.\d+\.\d+\.\d+$/.test(text)
  const isPlain = /^[A-Za-z_/~][\w./~-]*$/.test(text) && !NOT_TEXT.test(text)
  return isAddress || isPlain ? text : JSON.stringify(text)
}

/** The keys of a host that can be written without knowing the rest of the file, in hosts.yaml's own spelling. */
export type HostKeys = {
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly transport?: string
  readonly jump?: string
  readonly identity_file?: string
}

/** `{ address: …, port: … }`, or nothing. */
export function formatHostKeys(host: HostKeys): string {
  const entries = Object.entries(host).map(([key, value]) => {
    // A percent sign begins a token in an address.
    const written = key === 'address' ? String(value).replaceAll('%', '%%') : value
    return `${key}: ${typeof written === 'number' ? written : formatScalar(String(written))}`
  })
  return entries.length === 0 ? '' : `{ ${entries.join(', ')} }`
}
