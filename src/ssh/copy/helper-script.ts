/**
 * The helper of a copy on hosts with Python 3.6 or newer: it takes many small files in one piece, and relays large files from host
 * to host. It is sent over its own channel and never stored. It reads one JSON object per line (and the bytes of a pack after its
 * line), answers with JSON lines, and ends with its input or after a minute without any.
 *
 * Between hosts, the receiver listens for twenty seconds and for one peer, on the address at which SSH reached it. Both ends
 * authenticate over TLS with a key made for this one link. Frames are FILE OFFSET LENGTH and bytes. The helper writes only files that
 * were announced to it, only at their end, and renames none: the shell does that, after it has verified the whole file.
 */
import { STALE_MS } from '../../base/stale-partials.ts'
import { FOREIGN_LINK } from './remote-script.ts'

/** For any login shell: no line feed, no single quote inside, no `!`, no backslash. */
export function helperCommand(scriptBytes: number): string {
  const find = 'for p in /usr/bin/python3 python3 /usr/libexec/platform-python /usr/local/bin/python3'
  const start = `exec $p -I -S -c "import sys;exec(sys.stdin.buffer.read(${scriptBytes}))"`
  return `exec env LC_ALL=C PYTHONIOENCODING=utf-8 /bin/sh -c 'umask 077; ${find}; do command -v $p >/dev/null 2>&1 && ${start}; done; exit 127'`
}

/** It prints `TOKEN` on a line of its own when it has started. */
export function helperScript(token: string): Buffer {
  return Buffer.from(
    `TOKEN = ${JSON.stringify(token)}\nFOREIGN_LINK = ${JSON.stringify(FOREIGN_LINK)}\nWEEK = ${STALE_MS / 1000}\n${SCRIPT}`,
  )
}

const SCRIPT = String.raw`
import fcntl, hashlib, json, os, queue, signal, socket, stat, struct, sys, termios, threading, time
from contextlib import suppress

IN = sys.stdin.buffer
NODE = os.uname().nodename
SUFFIX = ('.%s.%d' % (NODE, os.getpid())).encode()
HEAD = struct.Struct('>IQI')
CHUNK = 128 * 1024
LEAST = 4096
RECORD = 16384
NAP = 0.004
PROBE = 0xffffffff
files, links, heard, saying = {}, {}, [time.monotonic()], threading.Lock()

def say(**message):
    with saying:
        rest = json.dumps(message).encode() + b'\n'
        try:
            while rest:
                rest = rest[os.write(1, rest):]
        except OSError:
            os._exit(1)

def why(error):
    return getattr(error, 'strerror', None) or str(error) or type(error).__name__

def path_of(text):
    return text.encode('latin-1')

def background(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()

def watch():
    while time.monotonic() - heard[0] < 60:
        time.sleep(5)
    os._exit(1)

# Small files.

def digest_of(path):
    with open(path, 'rb', buffering=0) as file:
        return hashlib.sha256(file.read()).hexdigest()

def set_attributes(path, mode, mtime, found=None):
    if found is None or found.st_mtime_ns != mtime:
        os.utime(path, ns=(mtime, mtime))
    if found is None or stat.S_IMODE(found.st_mode) != mode or found.st_mtime_ns != mtime:
        os.chmod(path, mode)

def kind_of(path, directory=None):
    try:
        found = os.stat(path, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise OSError(21, 'Is a directory')
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise OSError(1, 'Is a device, pipe or socket')
    return found

# A link of another account may lead anywhere; the user's own and root's are meant.
def refuse_foreign(path, directory=None):
    with suppress(FileNotFoundError):
        found = os.lstat(path, dir_fd=directory)
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            raise OSError(1, FOREIGN_LINK)

# The directory that is copied into, and that of the last file: path and handle.
DIRECTORY = os.O_DIRECTORY | getattr(os, 'O_PATH', os.O_RDONLY)
top, last = [None, None], [None, None]

# A handle of a directory: others may rename it, and put a link in its place, but what is entered stays the same.
def enter(directory):
    if last[0] != directory:
        handle = walk(directory)
        if last[1] is not None:
            os.close(last[1])
        last[:] = directory, handle
    return last[1]

def walk(directory):
    if top[0] is None or not (directory + b'/').startswith(top[0].rstrip(b'/') + b'/'):
        return os.open(directory, DIRECTORY)
    if top[1] is None:
        refuse_foreign(top[0])
        top[1] = os.open(top[0], DIRECTORY)
    handle = os.dup(top[1])
    for name in filter(None, directory[len(top[0]):].split(b'/')):
        above = handle
        try:
            refuse_foreign(name, above)
            linked = stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode)
            handle = os.open(name, DIRECTORY | (0 if linked else os.O_NOFOLLOW), dir_fd=above)
        finally:
            os.close(above)
    return handle

def refresh(directory):
    # Opened, a network file system asks its server what is in it now.
    with suppress(OSError):
        os.close(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))

def answer(message, items, work):
    answers = []
    for item in items:
        try:
            answers.append(work(*item) or '')
        except OSError as error:
            answers.append((message['op'] == 'offer') * '!' + why(error))
    say(id=message['id'], answers=answers)

def offer(message):
    def compare(name, size, mode, mtime, digest):
        path = path_of(name)
        found = kind_of(path)
        same = found is not None and stat.S_ISREG(found.st_mode) and found.st_size == size
        try:
            same = same and digest_of(path) == digest
        except PermissionError:
            same = False
        if same and message['setsAttributes']:
            set_attributes(path, mode, int(mtime), found)
        return 'same' if same else 'need'
    answer(message, message['files'], compare)

def make_directory(path, replaces):
    if replaces and os.path.islink(path):
        os.unlink(path)
    refuse_foreign(path)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        if not os.access(path, os.W_OK):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | 0o700)
        refresh(path)

def make(message):
    top[:], last[0] = (path_of(message['top']), None), None
    refused = []
    def make_one(name, replaces):
        path = path_of(name)
        # What was refused may be a link.
        if refused and path.startswith(refused[-1] + b'/'):
            raise OSError(20, 'Not a directory')
        try:
            make_directory(path, replaces)
        except OSError:
            refused.append(path)
            raise
    answer(message, message['paths'], make_one)

def set_all(message):
    def set_one(name, mode, mtime):
        path = path_of(name)
        refuse_foreign(path)
        # Directories keep the special bits that they have.
        set_attributes(path, mode | stat.S_IMODE(os.stat(path).st_mode) & 0o7000, int(mtime))
    answer(message, message['paths'], set_one)

# Partial files of killed copies, by directory.
leftovers = {}

# (path, name without the ending, whether it is of this machine, pid) of each partial file.
def partials(directory):
    with suppress(OSError):
        for name in os.listdir(directory):
            parts = name.split(b'.')
            if name.startswith(b'.muster-') and len(parts) > 3 and parts[-1].isdigit():
                own = b'.'.join(parts[2:-1]) == os.fsencode(NODE)
                yield os.path.join(directory, name), b'.' + parts[1], own, int(parts[-1])

def sweep(directory, name):
    if directory not in leftovers:
        known = leftovers[directory] = {}
        for path, target, own, pid in partials(directory):
            if own:
                known.setdefault(target, []).append((path, pid))
    for path, pid in leftovers[directory].pop(name, []):
        if not runs(pid):
            with suppress(OSError):
                os.unlink(path)

# Runs at the end, as in the shell: removes partial files older than a week.
def stale():
    for directory in leftovers:
        for path, target, own, pid in partials(directory):
            if len(target) == 24 and not (own and runs(pid)):
                with suppress(OSError):
                    facts = os.lstat(path)
                    if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and time.time() - facts.st_mtime >= WEEK:
                        os.unlink(path)

def runs(pid):
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True

def leave(status):
    stale()
    os._exit(status)

def place(name, partial, mode, mtime, digest, data):
    path, directory = path_of(name), os.path.dirname(path_of(name)) or b'.'
    sweep(directory, os.path.basename(path_of(partial)))
    within = enter(directory)
    path, partial = os.path.basename(path), os.path.basename(path_of(partial)) + SUFFIX
    kind_of(path, within)
    try:
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=within)
        try:
            rest = memoryview(data)
            while len(rest) > 0:
                rest = rest[os.write(handle, rest):]
            if hashlib.sha256(os.pread(handle, len(data) + 1, 0)).hexdigest() != digest:
                raise OSError(5, 'the checksum differs')
            set_attributes(handle, mode, int(mtime))
        finally:
            os.close(handle)
        os.replace(partial, path, src_dir_fd=within, dst_dir_fd=within)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial, dir_fd=within)
        raise

def pack(message):
    failures = []
    for index, (name, partial, size, mode, mtime, digest) in enumerate(message['files']):
        data = take(size)
        try:
            place(name, partial, mode, mtime, digest, data)
        except OSError as error:
            failures.append([index, why(error)])
    say(id=message['id'], failures=failures)

def take(size):
    data = IN.read(size)
    heard[0] = time.monotonic()
    if len(data) < size:
        leave(0)
    return data

# Large files, from host to host.

class File:
    def __init__(self, number, path, have, size, sparse):
        self.number, self.size, self.have, self.sparse = number, size, have, sparse
        self.told, self.told_at, self.broken = have, 0.0, False
        # The only link that may bring it.
        self.link = None
        self.changed = threading.Condition()
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        background(self.verify, os.dup(self.handle))

    # Reads back what was written while more comes, so that little is left to read at the end.
    def verify(self, handle):
        digest, at = hashlib.sha256(), 0
        with suppress(OSError), os.fdopen(handle, 'rb', 0):
            while at < self.size:
                with self.changed:
                    while self.have < min(at + 1048576, self.size) and not self.broken:
                        self.changed.wait(0.5)
                    ready = self.have
                data = os.pread(handle, min(1048576, ready - at), at) if ready > at else b''
                if len(data) == 0:
                    return
                digest.update(data)
                at += len(data)
            say(file=self.number, sha256=digest.hexdigest())

    def grow(self, have):
        with self.changed:
            self.have = max(self.have, have)
            self.changed.notify_all()

    def take_from(self, link):
        with self.changed:
            self.link = link
            self.changed.notify_all()

    def write(self, link, offset, data, hole):
        end = offset + max(len(data), hole)
        with self.changed:
            # The orders that permit it take another path, and may arrive later than the data.
            until = time.monotonic() + 10
            while (self.link != link or offset > self.have) and not self.broken and time.monotonic() < until:
                self.changed.wait(0.5)
            if self.link != link or offset > self.have or not self.have < end <= self.size or self.broken:
                return
            skip = self.have - offset
            try:
                if hole:
                    os.ftruncate(self.handle, max(end, os.fstat(self.handle).st_size))
                else:
                    at, rest = self.have, memoryview(data)[skip:]
                    while len(rest) > 0:
                        done = os.pwrite(self.handle, rest, at)
                        at, rest = at + done, rest[done:]
            except OSError as error:
                self.broken = True
                say(file=self.number, error=why(error))
                return
            self.have = end
            self.changed.notify_all()
        now = time.monotonic()
        if self.have == self.size or self.have - self.told >= 1048576 or now - self.told_at > 0.2:
            self.told, self.told_at = self.have, now
            say(file=self.number, have=self.have)

def context_of(message, server):
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    if hasattr(ssl, 'TLSVersion'):
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    else:
        context.options |= ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=message['certificate'])
    certify(context, message['certificate'].encode(), message['key'].encode())
    return context

# Through pipes, so that the key is in no file: named ones where the system has no /dev/fd (a chroot, a bare container).
def certify(context, certificate, key):
    ends = []
    try:
        for text in (certificate, key):
            out, into = os.pipe()
            ends.append(out)
            os.write(into, text)
            os.close(into)
        for place in ('/dev/fd', '/proc/self/fd'):
            if os.path.exists('%s/%d' % (place, ends[0])):
                return context.load_cert_chain(*('%s/%d' % (place, end) for end in ends))
    finally:
        for end in ends:
            os.close(end)
    failures = []
    for place in (os.environ.get('TMPDIR'), '/tmp', '/dev/shm', os.path.expanduser('~')):
        if place:
            try:
                return certify_by_name(context, place, (certificate, key))
            except OSError as error:
                failures.append('%s: %s' % (place, why(error)))
    raise OSError(2, 'the key of the link cannot be handed over: no /dev/fd; ' + ', '.join(failures))

def certify_by_name(context, place, texts):
    import tempfile
    directory = tempfile.mkdtemp(prefix='.muster-', dir=place)
    names = []
    try:
        for number, text in enumerate(texts):
            name = '%s/%d' % (directory, number)
            os.mkfifo(name, 0o600)
            names.append(name)
            background(feed, name, text)
        context.load_cert_chain(*names)
    finally:
        for name in names:
            # Without a reader the feeder would wait for ever.
            os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
            os.unlink(name)
        os.rmdir(directory)

def feed(name, text):
    # By its handle: opened by name, a pipe that is gone by now would become a file.
    with suppress(OSError), open(os.open(name, os.O_WRONLY), 'wb', 0) as pipe:
        pipe.write(text)

def waiting(stream):
    return struct.unpack('i', fcntl.ioctl(stream.fileno(), termios.FIONREAD, bytes(4)))[0]

class Link:
    def __init__(self, number):
        self.number, self.work, self.stream, self.closed = number, queue.Queue(), None, False

    def close(self):
        self.closed = True
        self.work.put(None)
        stream = self.stream
        if stream is not None:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def listen(self, message):
        try:
            address = (os.environ.get('SSH_CONNECTION', '').split() + ['', '', ''])[2] or message['address']
            listener = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
            with listener:
                self.stream = listener
                listener.bind((address, 0))
                listener.listen(4)
                context = context_of(message, True)
                say(link=self.number, at=[address, listener.getsockname()[1]])
                until = time.monotonic() + 20
                while True:
                    left = until - time.monotonic()
                    if left <= 0 or self.closed:
                        raise OSError(110, 'no peer connected')
                    listener.settimeout(left)
                    peer = listener.accept()[0]
                    peer.settimeout(10)
                    try:
                        stream = context.wrap_socket(peer, server_side=True)
                        break
                    except OSError:
                        # Not the expected peer.
                        peer.close()
                self.stream = stream
            self.take_in(stream)
        except Exception as error:
            say(link=self.number, error=why(error))

    def take_in(self, stream):
        stream.settimeout(None)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        say(link=self.number, up=True)
        block = memoryview(bytearray(CHUNK))
        began = 0.0
        with stream:
            while True:
                number, offset, length = HEAD.unpack(self.read(stream, block[:HEAD.size]))
                hole = length >> 31
                length &= 0x7fffffff
                if length > CHUNK:
                    raise OSError(71, 'a frame is too long')
                if number == PROBE:
                    self.read(stream, block[:length])
                    began = began or time.monotonic()
                    if length == 0:
                        say(link=self.number, probe=[offset, max(time.monotonic() - began, 1e-4)])
                    continue
                file = files.get(number)
                if hole and file is not None:
                    file.write(self.number, offset, b'', length)
                end = offset + (0 if hole else length)
                while offset < end:
                    # Over a slow link, each part counts as soon as it has come.
                    data = self.read(stream, block[:end - offset], 0.2)
                    if file is not None:
                        file.write(self.number, offset, data, 0)
                    offset += len(data)

    # Fills the block, unless that takes longer than the limit.
    def read(self, stream, block, limit=None):
        at, until = 0, limit and time.monotonic() + limit
        while at < len(block) and not (at > 0 and until and time.monotonic() > until):
            # Wakes up once for many packets, not for each.
            if stream.pending() == 0 and waiting(stream) < RECORD:
                time.sleep(NAP)
            got = stream.recv_into(block[at:])
            if got == 0:
                raise OSError(104, 'the link was closed')
            at += got
        return block[:at]

    def connect(self, message):
        try:
            raw = socket.create_connection(tuple(message['to']), timeout=3)
            self.stream = raw
            raw.settimeout(10)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = self.stream = context_of(message, False).wrap_socket(raw)
            stream.settimeout(None)
            with stream:
                self.bring_out(stream)
        except Exception as error:
            say(link=self.number, error=why(error))

    def bring_out(self, stream):
        for task in iter(self.work.get, None):
            if task[0] == 'probe':
                _, most, limit = task
                sent, until = 0, time.monotonic() + limit
                block = bytes(65536)
                while sent < most and time.monotonic() < until:
                    stream.sendall(HEAD.pack(PROBE, sent, len(block)) + block)
                    sent += len(block)
                stream.sendall(HEAD.pack(PROBE, sent, 0))
                continue
            _, file, handle, at = task
            most = CHUNK
            try:
                while at < file.size and not self.closed:
                    with file.changed:
                        while file.have <= at and not self.closed:
                            file.changed.wait(0.5)
                        ready = file.have
                    if self.closed:
                        break
                    data = os.pread(handle, min(most, ready - at), at)
                    if len(data) == 0:
                        raise OSError(5, 'the file has shrunk')
                    began = time.monotonic()
                    if file.sparse and data.count(0) == len(data):
                        stream.sendall(HEAD.pack(file.number, at, len(data) | 0x80000000))
                    else:
                        stream.sendall(HEAD.pack(file.number, at, len(data)) + data)
                    at += len(data)
                    # Records that a slow link takes within a moment show that it is alive.
                    took = time.monotonic() - began
                    most = max(LEAST, most // 2) if took > 0.4 else min(CHUNK, most * 2) if took < 0.1 else most
            finally:
                os.close(handle)

def open_file(message):
    try:
        files[message['file']] = File(message['file'], path_of(message['path']), message['have'], message['size'], message['sparse'])
    except OSError as error:
        say(file=message['file'], error=why(error))

def forget(message):
    file = files.pop(message['file'], None)
    if file is not None:
        with file.changed:
            file.broken = True
            os.close(file.handle)

def open_link(message):
    link = links[message['link']] = Link(message['link'])
    background(getattr(link, message['op']), message)

ORDERS = {
    'offer': offer, 'pack': pack, 'make': make, 'attributes': set_all,
    'file': open_file, 'forget': forget, 'listen': open_link, 'connect': open_link,
    'have': lambda m: m['file'] in files and files[m['file']].grow(m['have']),
    'take': lambda m: m['file'] in files and files[m['file']].take_from(m['link']),
    'probe': lambda m: links[m['link']].work.put(('probe', m['bytes'], m['seconds'])),
    'serve': lambda m: links[m['link']].work.put(('serve', files[m['file']], os.dup(files[m['file']].handle), m['from'])),
    'drop': lambda m: m['link'] in links and links.pop(m['link']).close(),
    'ping': lambda m: None,
}

def main():
    signal.signal(signal.SIGHUP, lambda *_: leave(0))
    os.write(1, (TOKEN + '\n').encode())
    background(watch)
    while True:
        line = IN.readline()
        heard[0] = time.monotonic()
        if not line.endswith(b'\n'):
            leave(0)
        message = json.loads(line.decode())
        ORDERS[message['op']](message)

try:
    main()
except BaseException as error:
    sys.stderr.write('%s: %s\n' % (type(error).__name__, error))
finally:
    sys.stderr.flush()
    os._exit(1)
`
