const FIELDS: Readonly<Record<string, number>> = { 'ssh-rsa': 2, 'ssh-dss': 4, 'ssh-ed25519': 1 }

/** A key blob of this type whose bytes differ by `seed`: well formed, no real key. */
export function blobOf(type: string, seed = 0): Uint8Array {
  const fields = Array.from({ length: FIELDS[type] ?? 2 }, () => Buffer.alloc(32, seed))
  return Buffer.concat([Buffer.from(type), ...fields].flatMap((field) => [lengthOf(field), field]))
}

function lengthOf(field: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(field.length)
  return length
}
