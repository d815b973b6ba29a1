/**
 * Takes the place of `Intl.Segmenter` in the installed program: six packages make one while they are loaded, which takes longer
 * than drawing the console's first screen, whose text needs none.
 */
import { NARROW } from '../src/base/narrow-text.ts'

let made: Intl.Segmenter | undefined

/** Splits into graphemes, whatever it was made for: no package asks for anything else. */
export class LateSegmenter {
  segment(text: string): Iterable<Pick<Intl.SegmentData, 'segment' | 'index'>> {
    if (NARROW.test(text)) return Array.from(text, (segment, index) => ({ segment, index }))
    made ??= new globalThis.Intl.Segmenter()
    return made.segment(text)
  }
}
