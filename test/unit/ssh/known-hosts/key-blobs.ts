/** A key blob of this type whose bytes differ by `seed`: well formed, no real key. */
export function blobOf(type: string, seed = 0): Uint8Array {
  const name = Buffer.from(type)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(name.length)
  return Buffer.concat([length, name, Buffer.alloc(32, seed)])
}
