/**
 * Replaces `Intl.Segmenter` in the installed program, and makes one only when a text needs it. Six packages make one while they
 * are loaded, which takes longer than drawing the console's first screen.
 */
import { NARROW } from '../src/base/narrow-text.ts'

let made: Intl.Segmenter | undefined

/** Always splits into graphemes: no package asks for anything else. */
export class LateSegmenter {
  segment(text: string): Iterable<Pick<Intl.SegmentData, 'segment' | 'index'>> {
    if (NARROW.test(text)) return Array.from(text, (segment, index) => ({ segment, index }))
    made ??= new globalThis.Intl.Segmenter()
    return made.segment(text)
  }
}
