import { shellQuote } from './shell-quote.ts'

/**
 * `-c` and the program, words for Python behind its name. Modules come from everywhere but the current directory, in which others
 * may have put some. (`-P` does the same from Python 3.11 on; `-I` leaves out the user's own packages, too.)
 */
export const pythonWords = (program: string): string =>
  `-c ${shellQuote(`import sys\nsys.path[:] = [place for place in sys.path if place]\n${program}`)}`
