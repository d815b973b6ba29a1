/**
 * Replaces `Intl.Segmenter` in the installed program, and makes one only when a text needs it. Six packages make one while they
 * are loaded, which takes longer than drawing the console's first screen.
 */
import { NARROW } from '../src/base/narrow-text.ts'

let made: Intl.Segmenter | undefined

/** Always splits into graphemes: no package asks for anything else. */
export class LateSegmenter implements Pick<Intl.Segmenter, 'segment'> {
  segment(text: string): Intl.Segments {
    if (NARROW.test(text)) return new NarrowSegments(text)
    made ??= new globalThis.Intl.Segmenter()
    return made.segment(text)
  }
}

/** Of a text in which each character is one grapheme and one code unit. */
class NarrowSegments implements Intl.Segments {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  containing(at = 0): Intl.SegmentData | undefined {
    const index = Math.trunc(at) || 0
    const segment = this.#text[index]
    return segment === undefined ? undefined : { segment, index, input: this.#text }
  }

  *[Symbol.iterator](): Generator<Intl.SegmentData, undefined, unknown> {
    for (let index = 0; index < this.#text.length; index++)
      yield { segment: this.#text[index] ?? '', index, input: this.#text }
  }
}
