/** For a terminal whose locale is not UTF-8: Muster's own text is printed as ASCII. Output of hosts stays as it is. */
import type { Writable } from 'node:stream'
import { asciiText, isUtf8Locale } from '../../base/ascii.ts'

export function keepToAscii(
  stream: Pick<Writable, 'write'> & { readonly isTTY?: boolean },
  environment: Readonly<Record<string, string | undefined>>,
): void {
  if (stream.isTTY !== true || isUtf8Locale(environment)) return
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean
  stream.write = (chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? asciiText(chunk) : chunk, ...rest)
}
