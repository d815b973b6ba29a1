/** A program of a kernel host that can be held in the middle of its work. */
import type { KernelHost } from '../cluster/kernel-host.ts'

/** A file is half written before dd waits. */
export const HALF = 'for word; do case $word in of=*) echo half > "$(echo "$word" | cut -c 4-)";; esac; done'

const PATIENCE_MS = 400_000

export type Hold = {
  readonly program: string
  /** Of the shell, for the arguments. */
  readonly pattern?: string
  /** A condition of the shell besides. */
  readonly when?: string
  /** What it does before it waits. */
  readonly begin?: string
  /** It is in a session of its own, which Muster does not end. */
  readonly isLeft?: boolean
}

export type Held = {
  /** It is in the middle of its work. */
  reached(): Promise<void>
  /** Once it has been ended, unless it `isLeft`; the program is as before then. */
  release(): Promise<void>
}

/** Puts a stand-in before the program, until it is released. */
export async function holdOn(
  host: KernelHost,
  { program, pattern = '*', when, begin = ':', isLeft = false }: Hold,
): Promise<Held> {
  const standIn = `#!/bin/sh
case "$*" in ${pattern})
  if [ -e /run/hold ]${when === undefined ? '' : ` && ${when}`}; then
    ${begin}
    touch /run/held
    while [ -e /run/hold ]; do sleep 0.1; done
  fi;;
esac
exec /run/real-${program} "$@"
`
  await host.mustExec(`path=$(readlink -f "$(command -v ${program})") && cp -p "$path" /run/real-${program}
printf %s '${standIn.replaceAll("'", "'\\''")}' > /run/stand-in && chmod 755 /run/stand-in
rm -f /run/held; touch /run/hold; mount --bind /run/stand-in "$path"`)
  const ended = isLeft ? ':' : `while pgrep -f '^/bin/sh [^ ]*/${program} ' > /dev/null; do sleep 0.1; done`
  return {
    reached: async () => {
      const { code } = await host.exec('while [ ! -e /run/held ]; do sleep 0.1; done', { timeoutMs: PATIENCE_MS })
      if (code !== 0) throw new Error(`nobody can wait on ${host.name} any more`)
    },
    release: async () =>
      void (await host.mustExec(`${ended}; rm -f /run/hold; umount -l "$(readlink -f "$(command -v ${program})")"`)),
  }
}
