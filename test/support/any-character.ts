import fc from 'fast-check'

const SURROGATES_FROM = 0xd800
const SURROGATES = 0x800

/** Each code point but the surrogates. fast-check's own `binary` is the same, and takes half a second to make its tables. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - SURROGATES })
  .map((point) => String.fromCodePoint(point < SURROGATES_FROM ? point : point + SURROGATES))
