/**
 * What a host does with the file of an image that another host sent, before Docker gets it. A file of `docker save` may name any number of
 * images, in several lists, and Docker gives all these names to what the file holds. So Docker gets another archive: a list that is
 * written here, with the one name, and the parts of that image.
 */

/** Under which names `docker save` and `podman save` write an image that is called `image`. */
export function savedNamesOf(image: string): readonly string[] {
  const name = image.includes(':', image.lastIndexOf('/') + 1) ? image : `${image}:latest`
  const short = name.replace(/^docker\.io\//, '').replace(/^library\//, '')
  // A first part with a dot or a port is a registry.
  if (/^(localhost|[^/]*[.:][^/]*)\//.test(short)) return [name]
  const full = short.includes('/') ? `docker.io/${short}` : `docker.io/library/${short}`
  return [...new Set([name, short, full, `localhost/${short}`])]
}

const LARGEST_LIST = 1 << 20
const MOST_FILES = 100_000

/**
 * Prints the archive for Docker. Arguments: the file, the host that sent it, `check` or `print`, the allowed names. It reads headers
 * of tar itself, because tarfile keeps headers of any size in memory.
 */
export const IMAGE_PROGRAM = `import io, json, os, posixpath, re, sys, tarfile
path, host, mode, names = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
def refuse(why): sys.exit("the image file of %s %s: nothing was loaded" % (host, why))
source = open(path, "rb")
whole = os.fstat(source.fileno()).st_size
files, links, more, count = {}, {}, {}, 0
while True:
    try: entry = tarfile.TarInfo.frombuf(source.read(512), "utf-8", "surrogateescape")
    except tarfile.EOFHeaderError: break
    except tarfile.HeaderError: refuse("is not an archive of docker save, or cut")
    count += 1
    start, size = source.tell(), int(more.get("size", entry.size))
    if entry.type in b"123456": size = 0
    if count > ${MOST_FILES} or size < 0 or start + size > whole: refuse("is too large or cut")
    if entry.type in (b"x", b"L", b"K"):
        if size > ${LARGEST_LIST}: refuse("has too long a name")
        text = source.read(size)
        if entry.type != b"x": more["path" if entry.type == b"L" else "linkpath"] = text.rstrip(b"\\0").decode("utf-8", "surrogateescape")
        while entry.type == b"x" and text:
            length = re.match(b"([0-9]{1,7}) ", text)
            record = length and text[length.end():int(length.group(1))]
            if not record or not record.endswith(b"\\n"): refuse("has a header that is not understood")
            key, _, value = record[:-1].decode("utf-8", "surrogateescape").partition("=")
            if key == "size" and not re.fullmatch("[0-9]{1,18}", value): refuse("has a header that is not understood")
            if key in ("path", "linkpath", "size"): more[key] = value
            text = text[int(length.group(1)):]
    elif entry.type != b"g":
        name = posixpath.normpath(more.get("path", entry.name))
        target = more.get("linkpath", entry.linkname)
        files.pop(name, None)
        links.pop(name, None)
        if entry.isreg(): files[name] = (start, size)
        elif entry.issym(): links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        elif entry.islnk(): links[name] = posixpath.normpath(target)
        more = {}
    source.seek(start + (size + 511) // 512 * 512)
def find(name):
    name = posixpath.normpath(name) if isinstance(name, str) else None
    found = files.get(links.get(name, name))
    if found is None: refuse("lacks a part of the image")
    return found
start, size = find("manifest.json")
if size > ${LARGEST_LIST}: refuse("has too long a list of images")
source.seek(start)
try: images = json.loads(source.read(size).decode())
except (ValueError, RecursionError): refuse("has a list of images that is not understood")
if not isinstance(images, list) or len(images) != 1 or not isinstance(images[0], dict): refuse("does not hold exactly one image")
tags, layers = images[0].get("RepoTags"), images[0].get("Layers")
if not isinstance(tags, list) or len(tags) != 1 or tags[0] not in names: refuse("is not of %s alone, but of %s" % (names[0], json.dumps(tags)[:300]))
if not isinstance(layers, list) or len(layers) > 1000: refuse("has too many layers")
config, layers = find(images[0].get("Config")), [find(layer) for layer in layers]
if mode == "check": sys.exit()
try:
    archive = tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT)
    def add(name, size, content):
        entry = tarfile.TarInfo(name)
        entry.size = size
        archive.addfile(entry, content)
    def copy(name, part):
        source.seek(part[0])
        add(name, part[1], source)
    copy("config.json", config)
    parts = list(dict.fromkeys(layers))
    for number, part in enumerate(parts): copy("layer-%d.tar" % number, part)
    listed = [{"Config": "config.json", "RepoTags": tags, "Layers": ["layer-%d.tar" % parts.index(layer) for layer in layers]}]
    text = json.dumps(listed).encode()
    add("manifest.json", len(text), io.BytesIO(text))
    archive.close()
    sys.stdout.buffer.flush()
except OSError as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(1)
`
