/**
 * One process per shell of a host that begins bundles, where the host has Python 3.8. A bundle needs a session and a directory of its
 * own: `setsid` and `mkdir` would be two programs, each of which costs as much as the shell of the bundle. It ends with the
 * shell, and whatever it cannot do the shell does itself.
 */
import { shellQuote } from '../../base/shell-quote.ts'

/**
 * Its arguments are the directory of all bundles and the line that ends each message. The first message
 * ends the program of every bundle; each other one is the line `KEY FILE UMASK` and what that program begins with, and is answered
 * with `ok` or `no`. Python may change its own environment (LC_CTYPE) and ignores signals: bundles have those
 * of the shell.
 */
const HELPER = `import os, sys, _signal
place, end = sys.argv[1:]
end = ("\\n%s\\n" % end).encode()
held = b""
def take():
    global held
    while end not in held:
        more = os.read(0, 65536)
        if not more:
            sys.exit()
        held += more
    text, _, held = held.partition(end)
    return text
def start(text):
    words, _, program = text.partition(b"\\n")
    key, file, mask = words.decode().split()
    os.chdir(place)
    try:
        os.mkdir(key)
    except FileExistsError:
        pass
    file = "%s/%s" % (key, file)
    with open(file, "wb", 0) as out:
        if out.write(program + common) != len(program + common):
            raise OSError
    os.posix_spawnp("sh", ["sh", file, key, mask], own, file_actions=null, setsid=True, setsigdef=signals)
common = take()
with open("/proc/self/environ", "rb") as f:
    own = dict(one.split(b"=", 1) for one in f.read().split(b"\\0") if b"=" in one)
null = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in range(3)]
signals = [_signal.SIGCHLD, _signal.SIGPIPE, _signal.SIGXFSZ]
_signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
while True:
    text = take()
    try:
        start(text)
        os.write(1, b"ok\\n")
    except OSError:
        os.write(1, b"no\\n")
`

/**
 * Functions for the host's shell, with `line`, `mask`, and two pipes. `hire` starts the helper; `hand_over KEY FILE PROGRAM` waits for it and
 * fails where it did not begin the bundle. Descriptor 4 leads to it (also open for reading, as a pipe that nobody reads would end the
 * shell) and 6 from it.
 */
export const HELPER_FUNCTIONS = `helper=
hire() {
  for python in /usr/bin/python3 /usr/libexec/platform-python ""; do [ -x "$python" ] && break; done || return
  exec 4<>$1 5<$1 7<>$2 6<$2 8>$2 7>&-
  $python -I -S -c ${shellQuote(HELPER)} "$PWD" $line <&5 >&8 4>&- 5<&- 6<&- 8>&- &
  helper=$!
  exec 5<&- 8>&-
  printf '%s\n' "$lib$rest" "$line" >&4
}
helped() { [ -n "$helper" ] && kill -0 $helper 2>/dev/null; }
hand_over() {
  printf '%s\n' "$1 $2 $mask" "$3" "$line" >&4
  a=; read -r a <&6 || helper=
  [ "$a" = ok ]
}
dismiss() {
  exec 4>&- 6<&-
  [ -z "$helper" ] || { kill $helper; wait $helper; }
}
`

/** For what the shell leaves in the background: the helper ends when nobody can write to it any more. */
export const WITHOUT_HELPER = '4>&- 6<&-'
