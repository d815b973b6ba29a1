/**
 * Begins bundles on a host that has Python 3.8, beside its shell. Programs are what a start costs: with it, the command is the only
 * one. It ends with the shell, and whatever it cannot do the shell does itself.
 */
import { shellQuote } from '../../base/shell-quote.ts'

/**
 * Its arguments are the directory of all bundles, the line that ends each message, the mark of the shell's lines and the boot. The
 * first three messages are what programs of bundles have in common; each other one is the line `KEY FILE UMASK KIND` and a program,
 * and is answered with `ok` or `no`.
 *
 * A worker starts a plain bundle: it is a copy of the helper (`fork` without a new program) that takes a bundle from a pipe, waits for
 * its command and writes how it ended, then takes the next one. So each running bundle has a process of its own that waits for it,
 * whatever becomes of the helper. A worker leads a process group, which is the bundle's. Afterwards it leaves the group for a moment:
 * if others are still in it, the worker ends, as the next bundle would be stopped together with them. It also ends when it has waited
 * for a minute, when it could not write how a bundle ended, and when the bundle is being stopped: what stops a bundle first makes
 * a file `term.TIME`, then looks for `exit`; a worker first makes `exit`, then looks for `term.TIME`. So no bundle gets the signals
 * that were meant for the one before it.
 *
 * `id` is complete before it has its name; until then it is `run.BOOT.PID`, a name of this worker alone. Only a claim that is there
 * already means that another process begins the bundle: after any other error nothing is removed, as the claim may have been made.
 * Directories of users are entered by workers alone, since a file system may hang. Where one cannot be entered, a shell says why.
 *
 * A packet of the pipe is one bundle, at most 4 KiB. Where it may, the pipe holds 64 of them (1031 is F_SETPIPE_SZ), and the helper
 * never waits for room in it. For other bundles it starts the shell that waits for them.
 *
 * A worker tells the helper `PID CHANGE REPORT`: `+` it has taken a bundle, `-` it waits for the next one, `=` neither.
 *
 * Python may change its own environment (LC_CTYPE) and ignores signals: bundles have those of the shell. Reports go to the shell's
 * output in pieces of at most 4 KiB (PIPE_BUF), as the shell writes there, too.
 */
const HELPER = `import fcntl, os, select, sys, _signal
place, end, mark, boot = [os.fsencode(word) for word in sys.argv[1:]]
end = b"\\n" + end + b"\\n"
held, heard, news, programs, waiting, workers = b"", b"", b"", [], 0, {}
def put(path, text=b"", flags=os.O_TRUNC):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    try:
        if os.write(file, text) != len(text):
            raise OSError
    finally:
        os.close(file)
def tried(path, text=b""):
    try:
        put(path, text)
        return True
    except OSError:
        return False
def take(text):
    global waiting
    line, _, text = text.partition(b"\\n")
    key, file, mask, kind = line.split()
    own = place + b"/" + key
    try:
        os.mkdir(own)
    except FileExistsError:
        pass
    if kind == b"plain" and len(text) < 3840:
        os.write(to_worker, b"%s\\n%d\\n%s" % (key, int(mask, 8), text))
        waiting += 1
        return hire()
    os.chdir(place)
    file = key + b"/" + file
    put(file, text + (programs[2] if kind == b"plain" else b"") + programs[0])
    os.posix_spawnp("sh", ["sh", file, key, mask], environ, file_actions=null, setsid=True, setsigdef=defaults)
def read(own, text):
    *variables, base, directory, command = [
        word.replace(b"\\0", b"'") for word in text.replace(b"'\\\\''", b"\\0").split(b"'")[1::2]]
    environment = {**environ, **dict(one.split(b"=", 1) for one in variables)}
    home = own if base == b"here" else environment[b"HOME"]
    environment[b"PWD"] = os.path.normpath(os.path.join(home, directory))
    environment[b"OLDPWD"] = home if base == b"home" and directory else own
    return command, environment
def hire():
    while waiting > sum(not is_busy for is_busy in workers.values()):
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os._exit(1)
        workers[pid] = False
def work():
    for n in 0, 1:
        os.dup2(os.open("/dev/null", os.O_RDWR), n)
    for n in 8, to_worker, from_worker:
        os.close(n)
    _signal.set_wakeup_fd(-1)
    me, group = os.getpid(), os.getpgrp()
    os.setpgid(0, 0)
    with open("/proc/self/stat", "rb", 0) as stat:
        born = stat.read().rpartition(b") ")[2].split()[19]
    while run(me, born, next_bundle()):
        os.setpgid(0, group)
        try:
            os.killpg(me, 0)
            return
        except ProcessLookupError:
            os.setpgid(0, 0)
def next_bundle():
    _signal.alarm(60)
    text = os.read(worker, 4096)
    _signal.alarm(0)
    return text
def run(me, born, text):
    if not text:
        return False
    key, mask, text = text.split(b"\\n", 2)
    own, at = place + b"/" + key, uptime()
    file = own + b"/run.%s.%d" % (boot, me)
    able = tried(file, b"%d %s %s %s\\n" % (me, boot, born, at))
    try:
        put(own + b"/claim", b"", os.O_EXCL)
    except OSError as error:
        if able and isinstance(error, FileExistsError):
            os.unlink(file)
        return tell(b"+", b"")
    if able:
        try:
            os.rename(file, own + b"/id")
        except OSError:
            able = False
    if not able:
        for name in b"/code.unable", b"/exit":
            tried(own + name)
        return tell(b"+", key + b" exit unable")
    tell(b"+", key + b" begun at=" + at)
    try:
        code = command(own, int(mask), text)
    except Exception as error:
        code = 126
        tried(own + b"/err", b"%s\\n" % os.fsencode(str(error)))
    os.umask(0o077)
    to = uptime()
    last = code in (129, 137, 143) or is_stopped(own)
    try:
        os.chdir(own)
        if last:
            for number in endings:
                _signal.signal(number, _signal.SIG_IGN)
            os.execvp("sh", ["sh", "-c", programs[1], "sh", key, b"%d" % code, at, to, boot])
    except OSError:
        pass
    os.chdir("/")
    text = b"%d at=%s to=%s" % (code, at, to)
    if not tried(own + b"/exit", text + b" boot=" + boot + b"\\n"):
        tried(own + b"/code.%d" % code)
        return tell(b"=", key + b" exit " + text.replace(b" ", b" unwritten ", 1))
    if last or is_stopped(own):
        return tell(b"=", key + b" exit " + text)
    tell(b"-", key + b" exit " + text)
    return True
def is_stopped(own):
    try:
        return any(name.startswith(b"term.") for name in os.listdir(own))
    except OSError:
        return True
def command(own, mask, text):
    os.chdir(own)
    out, err = [os.open(own + name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for name in (b"/out", b"/err")]
    try:
        program, environment = read(own, text)
        os.chdir(environment[b"PWD"])
    except (OSError, LookupError, ValueError):
        program, environment = text + programs[2].partition(b"\\n")[0] + b"\\ngo", environ
    files = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2), (os.POSIX_SPAWN_CLOSE, 3)]
    os.umask(mask)
    pid = os.posix_spawnp("sh", ["sh", "-c", program], environment, file_actions=files, setsigdef=defaults)
    # What stopped it may have found the worker alone in the group, which ignores signals.
    if is_stopped(own):
        os.kill(pid, _signal.SIGTERM)
    # Over NFS a file that is open keeps its directory from being empty.
    os.close(out)
    os.close(err)
    code = os.waitpid(pid, 0)[1]
    return 128 + (code & 127) if code & 127 else code >> 8
def uptime():
    return os.pread(clock, 64, 0).split()[0]
def tell(change, text):
    try:
        os.write(to_helper, b"%d %s %s\\n" % (os.getpid(), change, text))
    except OSError:
        try:
            os.write(3, text and b"+%s\\n" % text)
        except OSError:
            pass
def hear(text):
    global heard, news, waiting
    *lines, heard = (heard + text).split(b"\\n")
    for line in lines:
        pid, change, text = line.split(b" ", 2)
        waiting -= change == b"+"
        if int(pid) in workers:
            workers[int(pid)] = change != b"-"
        if text:
            news += mark + b"+" + text + b"\\n"
def reap():
    try:
        while True:
            pid = os.waitpid(-1, os.WNOHANG)[0]
            if pid == 0:
                return hire()
            workers.pop(pid, None)
    except ChildProcessError:
        return hire()
os.setsid()
with open("/proc/self/comm", "w") as file:
    file.write("muster")
clock = os.open("/proc/uptime", os.O_RDONLY)
with open("/proc/self/environ", "rb") as file:
    environ = dict(one.split(b"=", 1) for one in file.read().split(b"\\0") if b"=" in one)
null = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in range(3)]
defaults = [_signal.SIGPIPE, _signal.SIGXFSZ]
endings = _signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM
for number in endings:
    if _signal.getsignal(number) != _signal.SIG_IGN:
        _signal.signal(number, lambda *_: None)
woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
_signal.signal(_signal.SIGCHLD, lambda *_: None)
_signal.set_wakeup_fd(wake)
worker, to_worker = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
os.set_blocking(to_worker, False)
try:
    fcntl.fcntl(to_worker, 1031, 1 << 18)
except OSError:
    pass
from_worker, to_helper = os.pipe()
os.set_inheritable(8, False)
while True:
    ready = select.select([woken, from_worker, 0], [], [])[0]
    if woken in ready:
        os.read(woken, 4096)
    if from_worker in ready:
        hear(os.read(from_worker, 65536))
    if woken in ready:
        try:
            reap()
        except OSError:
            pass
    if 0 in ready:
        more = os.read(0, 65536)
        if not more:
            sys.exit()
        held += more
        while end in held:
            text, _, held = held.partition(end)
            if len(programs) < 3:
                programs.append(text)
                continue
            try:
                take(text)
                answer = b"ok\\n"
            except (OSError, LookupError, ValueError):
                answer = b"no\\n"
            os.write(8, answer)
    while news:
        size = news.rfind(b"\\n", 0, 4096) + 1
        if select.select([], [1], [], 0)[1]:
            os.write(1, news[:size])
        news = news[size:]
`

/** Starts it again under a name of its own, so that `pkill python` means the user's programs alone. */
const RENAME = `import os, sys
with open("/proc/self/environ", "rb") as file:
    own = dict(one.split(b"=", 1) for one in file.read().split(b"\\0") if b"=" in one)
os.execve(sys.executable, ["muster"] + sys.argv[1:], own)
`

/** Of one message, and of what the helper has not answered yet: it may be dead, and a pipe holds 64 KiB. */
const MOST_UNANSWERED = 16_384

/**
 * Functions for the host's shell, with `line`, `mask`, and two pipes. `hire` starts the helper; `hand_over KEY PROGRAM BODY` gives it a
 * bundle (BODY is empty for a plain one), and `settle` waits for all answers and begins here what the helper did not. Descriptor 4
 * leads to it (also open for reading, as a pipe that nobody reads would end the shell) and 6 from it.
 */
export const HELPER_FUNCTIONS = `helper= handed=0 unanswered=0
hire() {
  for python in /usr/bin/python3 /usr/libexec/platform-python ""; do [ -x "$python" ] && break; done || return
  exec 4<>$1 5<$1 7<>$2 6<$2 8>$2 7>&-
  $python -I -S -c ${shellQuote(RENAME)} -I -S -c ${shellQuote(HELPER)} "$PWD" $line $mark $boot <&5 4>&- 5<&- 6<&- &
  helper=$!
  exec 5<&- 8>&-
  printf '%s\n' "$lib$rest" "$line" "$lib$finish$last" "$line" "$plain" "$line" >&4
}
helped() { [ -n "$helper" ] && kill -0 $helper 2>/dev/null; }
hand_over() {
  [ $((\${#2} + \${#3})) -lt ${MOST_UNANSWERED} ] || { start_here "$@"; return; }
  kind=plain; [ -z "$3" ] || kind=shell
  handed=$((handed + 1)); eval "key_$handed=\\$1 go_$handed=\\$2 body_$handed=\\$3"
  printf '%s\n' "$1 run.$boot.$$.$round $mask $kind" "$2$3" "$line" >&4
  unanswered=$((unanswered + \${#2} + \${#3} + 128)); [ $unanswered -lt ${MOST_UNANSWERED} ] || settle
}
settle() {
  i=0
  while [ $i -lt $handed ]; do
    i=$((i + 1)) a=
    [ -z "$helper" ] || read -r a <&6 || helper=
    [ "$a" = ok ] || eval "start_here \\"\\$key_$i\\" \\"\\$go_$i\\" \\"\\$body_$i\\""
  done
  handed=0 unanswered=0
}
dismiss() { exec 4>&- 6<&-; }
`

/** For what the shell leaves in the background: the helper ends when nobody can write to it any more. */
export const WITHOUT_HELPER = '4>&- 6<&-'
