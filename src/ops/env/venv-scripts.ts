/** The scripts for virtual environments: wheels are gathered once, with a lock, and installed everywhere without a network. */
import { shellQuote } from '../../base/shell-quote.ts'
import { pathWord } from '../kernel/files.ts'
import type { Action } from '../kernel/operation.ts'
import { DIGEST, MARK_FILE, PARCEL_MARK, parcelCheck } from './facts.ts'
import type { Pins } from './pins.ts'
import type { WheelsPlaces } from './wanted.ts'

const FETCH_TIMEOUT_MS = 60 * 60_000
const INSTALL_TIMEOUT_MS = 30 * 60_000

/** pip honours the user's settings when it fetches; it asks nothing and caches nothing. */
const QUIET = `PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_NO_COLOR=1
PIP_PROGRESS_BAR=off PIP_REQUIRE_VIRTUALENV=0
export PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT PIP_ROOT_USER_ACTION PIP_NO_CACHE_DIR PIP_NO_COLOR PIP_PROGRESS_BAR PIP_REQUIRE_VIRTUALENV
`

/**
 * Sets $t, the directory where pip unpacks and builds. It is beside the parcel, so that the next run or `down` removes what an
 * interrupted run left. Each host has its own, because several may share a home.
 */
function scratch(parcel: string): string {
  return `t=${pathWord(parcel)}.tmp-$(uname -n)
rm -rf "$t"
mkdir -p "$t" || exit 1
trap 'rm -rf "$t"' EXIT
trap 'exit 1' HUP INT TERM
TMPDIR=$t
export TMPDIR
`
}

/** What pip prints if the index does not answer: every index has pip itself. */
const NO_ANSWER =
  'requirement pip .from versions: none|NewConnectionError|ConnectTimeout|ReadTimeout|ConnectionError|ProxyError|NameResolutionError|name resolution|Max retries exceeded|Network is unreachable|No route to host'

/** A word of the shell: what to do about a package index that does not answer; $missing and $index are set. */
function noIndexWord(wheels: string | undefined): string {
  const index = `', and the package index '"$index"' does not answer this host'`
  return wheels === undefined
    ? `'cannot fetch '"$missing"${index.replace(', and', ':')}'. Put the wheels into a directory of this host and name it in hosts.yaml (wheels: DIRECTORY, below environment: venv:)'`
    : `'cannot fetch '"$missing"': it is not in '${shellQuote(wheels)}' (wheels: in hosts.yaml)'${index}'. Put its wheel there'`
}

/** Prints pip's report (`pip install --report`) as a lock: `name==version --hash=sha256:… # FILE`, with the wheels in $1. */
const LOCK_PROGRAM = `import glob, hashlib, json, os, re, shutil, sys
directory, report, others = sys.argv[1], sys.argv[2], sys.argv[3:]
def normal(name): return re.sub(r"[-_.]+", "-", name).lower()
def keyed(path):
    parts = os.path.basename(path).split("-")
    return (normal(parts[0]), parts[1]) if len(parts) > 2 else None
wheels = {}
for place in [*others, directory]:
    for path in sorted(glob.glob(os.path.join(place, "*.whl"))): wheels.setdefault(keyed(path), []).append(path)
lines, kept = [], set()
def lock(name, version, path):
    target = os.path.join(directory, os.path.basename(path))
    if not os.path.exists(target):
        shutil.copyfile(path, target + ".part"); os.replace(target + ".part", target)
    digest = hashlib.sha256()
    with open(target, "rb") as wheel:
        for block in iter(lambda: wheel.read(1 << 20), b""): digest.update(block)
    lines.append("%s==%s --hash=sha256:%s # %s" % (normal(name), version, digest.hexdigest(), os.path.basename(path)))
    kept.add(os.path.basename(path))
from urllib.parse import unquote, urlparse
for item in json.load(open(report))["install"]:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    url = item["download_info"]["url"]
    path = unquote(urlparse(url).path) if url.startswith("file:") and url.endswith(".whl") else None
    found = [path] if path else wheels.get((normal(name), version), [])
    if not found: sys.exit("there is no wheel of %s %s" % (name, version))
    lock(name, version, found[-1])
if not any(line.startswith("pip==") for line in lines):
    for key in sorted((key for key in wheels if key and key[0] == "pip"), key=lambda key: [int(n) for n in re.findall(r"[0-9]+", key[1])])[-1:]:
        lock("pip", key[1], wheels[key][-1])
for path in glob.glob(os.path.join(directory, "*.whl")):
    if os.path.basename(path) not in kept: os.remove(path)
print("\\n".join(sorted(lines)))
`

/** Removes from a parcel what is not in the lock that this host gathered. Arguments: parcel, that lock. */
const PRUNE_PROGRAM = `import hashlib, os, re, shutil, sys
directory, own = sys.argv[1:]
known = dict(re.findall("^.* --hash=sha256:([0-9a-f]{64}) # ([^/]+)$", open(own).read(), re.M)) if os.path.exists(own) else {}
for entry in os.scandir(directory):
    if entry.is_dir(follow_symlinks=False): shutil.rmtree(entry.path); continue
    digest = hashlib.sha256()
    if entry.is_file(follow_symlinks=False) and entry.name in known.values():
        with open(entry.path, "rb") as wheel:
            for block in iter(lambda: wheel.read(1 << 20), b""): digest.update(block)
    if known.get(digest.hexdigest()) != entry.name: os.remove(entry.path)
`

/** Prints a lock that tools of Python exchange (pylock.toml, PEP 751) or that uv writes (uv.lock) as pins with hashes, for this Python. */
const PINS_PROGRAM = `import sys
sys.path.insert(0, sys.argv[1])
try: import tomllib
except ImportError: from pip._vendor import tomli as tomllib
from pip._vendor.packaging.markers import Marker, default_environment
from pip._vendor.packaging.specifiers import SpecifierSet
with open(sys.argv[2], encoding="utf-8") as file: lock = tomllib.loads(file.read())
own = "%d.%d.%d" % sys.version_info[:3]
wanted = lock.get("requires-python", "")
if not SpecifierSet(wanted).contains(own, prereleases=True): sys.exit("the lock is for Python %s, and this is %s" % (wanted, own))
indexes, pins = set(), {}
def holds(marker, **more): return marker is None or Marker(marker).evaluate({**default_environment(), "extra": "", **more})
def pin(package, index, digests):
    name = package["name"]
    if not package.get("version") or not digests: sys.exit("%s in the lock is no file of an index: name it in a requirements.txt" % name)
    if (index or "").startswith("http") and index.rstrip("/") != "https://pypi.org/simple": indexes.add(index)
    pins[name] = "%s==%s %s" % (name, package["version"], " ".join("--hash=" + digest for digest in digests))
def files(package): return [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
if "packages" in lock:
    groups = {"extras": frozenset(), "dependency_groups": frozenset(lock.get("default-groups", []))}
    for package in lock["packages"]:
        if holds(package.get("marker"), **groups):
            digests = ["%s:%s" % pair for file in files(package) for pair in file.get("hashes", {}).items()]
            pin(package, package.get("index"), digests)
elif "package" in lock:
    packages, seen = lock["package"], set()
    def find(need):
        found = [each for each in packages if each["name"] == need["name"] and need.get("version", each.get("version")) == each.get("version")
            and need.get("source", each["source"]) == each["source"]]
        return next((each for each in found if any(map(holds, each.get("resolution-markers", [None])))), None)
    def walk(package, extras):
        source = package["source"]
        for extra in [None, *extras]:
            key = (package["name"], package.get("version"), extra)
            if key in seen: continue
            seen.add(key)
            needs = package.get("dependencies", []) if extra is None else package.get("optional-dependencies", {}).get(extra, [])
            for need in needs:
                if not holds(need.get("marker")): continue
                other = find(need)
                if other is None: sys.exit("%s is not in the lock" % need["name"])
                walk(other, need.get("extra", []))
        if "virtual" in source or "editable" in source: return
        pin(package, source.get("registry"), [file["hash"] for file in files(package) if "hash" in file] if "registry" in source else [])
    roots = [each for each in packages if "." in (each["source"].get("virtual"), each["source"].get("editable"))]
    members = lock.get("manifest", {}).get("members", [])
    for root in roots or [each for each in packages if each["name"] in members]: walk(root, [])
else: sys.exit("it is neither a pylock.toml nor a uv.lock")
print("\\n".join([*("--extra-index-url " + index for index in sorted(indexes)), *(pins[name] for name in sorted(pins))]))
`

export type Gathering = {
  readonly python: string
  /** The path of the environment, which may have the only pip. */
  readonly prefix: string
  readonly places: WheelsPlaces
  /** This host. */
  readonly host: string
  /** The lock's name in it. */
  readonly content: string
  /** The directory of hosts.yaml with ready wheels. */
  readonly wheels?: string
  /** `list`: requirements for pip; `complete`: pins of another environment; `lock`: converted to pins first. */
  readonly requirements: string
  readonly kind: 'list' | 'complete' | 'lock'
  /** Each host installs with a pip of its own, so a wheel of pip is not needed. */
  readonly isPipOwn?: boolean
}

/**
 * Finds the wheels on the host, or fetches them, and writes the lock to the parcel last; prints its SHA-256. It takes and runs nothing
 * that another host sent: of what is in the parcel, only wheels that it gathered itself.
 */
export function gatherWheels(gathering: Gathering): Action {
  const { host, python, prefix, places, content, wheels, requirements, kind, isPipOwn = false } = gathering
  const { parcel, own, filledBy } = places
  const deps = kind === 'list' ? '' : '--no-deps '
  const others = wheels === undefined ? '' : ` ${pathWord(wheels)}`
  return {
    script: `umask 022
# What pip prints is no part of the answer.
exec 3>&1 1>&2
${QUIET}${DIGEST}d=${pathWord(parcel)} p=${pathWord(prefix)} python=${shellQuote(python)}
own=${pathWord(own)} filled=${pathWord(filledBy)}
command -v "$python" > /dev/null || { echo "$python is not installed" >&2; exit 1; }
[ -f "$own" ] && [ ! -L "$d" ] || rm -rf "$d" || exit 1
mkdir -p "$d" "\${own%/*}" && : > "\${d%/*}/${PARCEL_MARK}" || exit 1
"$python" -I -c ${shellQuote(PRUNE_PROGRAM)} "$d" "$own" || exit 1
${scratch(parcel)}cat > "$t/${kind === 'lock' ? 'lock.toml' : 'requirements.txt'}" || exit 1
pins() { ${
      kind === 'lock'
        ? `"$python" -I -c ${shellQuote(PINS_PROGRAM)} "$wheel" "$t/lock.toml" > "$t/requirements.txt" || exit 1`
        : ':'
    }; }
lock() { "$python" -c ${shellQuote(LOCK_PROGRAM)} "$d" "$t/report"${others} > "$t/lock"; }
finish() {
  cp "$t/lock" "$own.part" && mv -f "$own.part" "$own" && rm -f "$d"/content-* &&
    cp "$t/lock" "$d/${content}.part" && mv -f "$d/${content}.part" "$d/${content}" && digest "$own" >&3
}
# Whether the pip of the environment can be none of another host's: Muster made it from wheels of this host, or did not make it.
is_own() { if [ -f "$filled" ]; then [ "$(cat "$filled")" = ${shellQuote(host)} ]; else [ ! -f "$p/${MARK_FILE}" ]; fi; }
wheel=$(ls "$d"/pip-*.whl${others === '' ? '' : `${others}/pip-*.whl`} 2> /dev/null | tail -n 1)
resolve() {
  "$@" install --dry-run --ignore-installed --quiet --report "$t/report" --no-index --find-links "$d"${
    others === '' ? '' : ` --find-links${others}`
  } ${deps}-r "$t/requirements.txt"
}
# A wheel that was built here out of what has the hash has another one.
built() {
  grep -q -e --hash= "$t/requirements.txt" || return 1
  sed 's/ *--hash=[^ ]*//g; s/ *\\\\$//' "$t/requirements.txt" > "$t/list" && mv "$t/list" "$t/requirements.txt" && resolve "$@"
}
# Says whether the index answers at all.
is_silent() {
  grep -q -E ${shellQuote(NO_ANSWER)} "$t/said" && return
  "$@" download --quiet --no-deps --dest "$t/probe" pip 2> "$t/probed"
  grep -q -E ${shellQuote(NO_ANSWER)} "$t/probed"
}
failed() {
  if is_silent "$@"; then
    missing=$(sed -n 's/^ERROR: No matching distribution found for //p' "$t/said" | tail -n 1)
    missing=\${missing:-the packages}
    # It may have a password in it.
    index=$(printf %s "\${PIP_INDEX_URL:-$("$@" config get global.index-url 2> /dev/null || echo https://pypi.org/simple)}" | sed 's#//[^/@]*@#//#')
    echo ${noIndexWord(wheels)} >&2
  else tail -n 20 "$t/said" >&2
  fi
  exit 1
}
if [ -n "$wheel" ]; then pins; fi
if [ -n "$wheel" ] && resolve "$python" "$wheel/pip" 2> /dev/null && lock; then finish; exit; fi
if is_own && "$p/bin/python" -m pip --version > /dev/null 2>&1; then set -- "$p/bin/python" -m pip
elif "$python" -m pip --version > /dev/null 2>&1; then set -- "$python" -m pip
elif command -v uv > /dev/null; then set -- uv tool run pip
elif "$python" -m venv "$t/venv" > /dev/null 2>&1; then set -- "$t/venv/bin/python" -m pip
else echo "there is no pip for $python: install python3-venv (or python3-pip, or uv)" >&2; exit 1
fi
if [ -z "$wheel" ] || ! "$python" "$wheel/pip" --version > /dev/null 2>&1; then
  # The directory that has pip serves as a wheel does, unless that pip is too old to write a report.
  wheel=${isPipOwn ? `$("$@" --version 2> /dev/null | sed -n 's/^pip [^ ]* from \\(.*\\)\\/pip (python .*/\\1/p')` : ''}
  if [ -z "$wheel" ] || ! "$python" "$wheel/pip" install --help 2> /dev/null | grep -q -e --report; then
    "$@" download --quiet --no-deps --dest "$d" pip 2> "$t/said" || failed "$@"
    wheel=$(ls -t "$d"/pip-*.whl | head -n 1)
  fi
  pins
fi
set -- "$python" "$wheel/pip"
"$@" wheel --quiet --wheel-dir "$d" --find-links "$d"${others === '' ? '' : ` --find-links${others}`} ${deps}-r "$t/requirements.txt" 2> "$t/said" || failed "$@"
{ resolve "$@" 2> "$t/said" || built "$@" || { cat "$t/said" >&2; exit 1; }; } && lock && finish`,
    stdin: [requirements],
    timeoutMs: FETCH_TIMEOUT_MS,
  }
}

/** What a virtual environment consists of, with what wheels may add (data). The rest of its directory is the user's. */
const OWN_PLACES = ['bin', 'include', 'lib', 'lib64', 'share', 'etc', 'man', '.gitignore', '.lock', 'CACHEDIR.TAG']

/**
 * Removes the environment in "$p", except for the mark. Without pyvenv.cfg it is none, whatever an interruption leaves; and then the
 * links in bin lead to the system's Python, so they go next.
 */
const EMPTY = `rm -rf "$p/pyvenv.cfg" "$p/bin" &&
find "$p" -mindepth 1 -maxdepth 1 '(' ${OWN_PLACES.map((each) => `-name ${each}`).join(' -o ')} ')' -exec rm -rf {} +`

/** Succeeds if the interpreter in "$p" installs into "$p", and not into the system. */
const IS_OWN = `"$p/bin/python" -I -c 'import os, sys; sys.exit(not os.path.samefile(sys.prefix, sys.argv[1]))' "$p"`

/** Whether there is an environment with an interpreter of its own. */
export function isVenv(prefix: string): string {
  return `p=${pathWord(prefix)}\n${IS_OWN}`
}

/** Succeeds if the parcel has all wheels, and its lock the SHA-256 on stdin, which is what the host that gathered them says. */
export function isBrought({ parcel }: WheelsPlaces, content: string): string {
  return `${DIGEST}hash=$(cat)
${parcelCheck(parcel, content)}
[ "$(digest "$d/${content}")" = "$hash" ]`
}

/** After the parcel was copied here. */
export function noteBrought({ root, brought }: WheelsPlaces): string {
  return `b=${pathWord(brought)} r=${pathWord(root)}
mkdir -p "\${b%/*}" && : > "$b" && : > "$r/${PARCEL_MARK}"`
}

/** Makes an empty environment; one of Muster's without a working interpreter is made again. */
export function makeVenv(
  python: string,
  prefix: string,
  { parcel, filledBy }: WheelsPlaces,
  key: string,
  /** The host whose wheels will fill it; undefined: the user's file decides about them. */
  filler: string | undefined,
): Action {
  return {
    script: `umask 022
p=${pathWord(prefix)} python=${shellQuote(python)}
command -v "$python" > /dev/null || { echo "$python is not installed" >&2; exit 1; }
if [ -f "$p/${MARK_FILE}" ]; then ${EMPTY} || exit 1; fi
mkdir -p "$p" && echo ${shellQuote(`venv ${key}`)} > "$p/${MARK_FILE}" || exit 1
${noteFiller(filledBy, filler)}
${scratch(parcel)}# With the wheel of pip in the parcel nothing else is needed of the system.
{ ! ls ${pathWord(parcel)}/pip-*.whl > /dev/null 2>&1 && "$python" -m venv "$p" > /dev/null 2>&1; } || "$python" -m venv --without-pip "$p"`,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

function noteFiller(filledBy: string, filler: string | undefined): string {
  const word = pathWord(filledBy)
  if (filler === undefined) return `rm -f ${word} || exit 1`
  return `f=${word} && mkdir -p "\${f%/*}" && echo ${shellQuote(filler)} > "$f" || exit 1`
}

/** Prints the packages that are not in the lock, except the tools that install. */
const EXTRA_PROGRAM = `import os, re, sys
from importlib import metadata
def normal(name): return re.sub(r"[-_.]+", "-", name).lower()
wanted = {line.split("==")[0] for line in open(sys.argv[1])} | {"pip", "setuptools", "wheel", "pkg-resources"}
names = {dist.metadata["Name"] for dist in metadata.distributions(path=[path for path in sys.path if path.startswith(os.path.join(sys.prefix, ""))])}
print("\\n".join(sorted(name for name in names if name and normal(name) not in wanted)))
`

/** pip's settings are for fetching: here they could only lead to another directory (target, prefix) or interpreter (python). */
const WITHOUT_SETTINGS = `for each in $(env | sed -n 's/^\\(PIP_[A-Za-z0-9_]*\\)=.*/\\1/p'); do unset "$each"; done
PIP_CONFIG_FILE=/dev/null
export PIP_CONFIG_FILE
`

/**
 * Prints the lock of another host with the hashes of the wheels that are there, if the user's file allows all of them. pip itself is
 * left out unless the file names it. Arguments: parcel, lock, `NAME ALGORITHM:HASH…` lines, the other host, the user's file.
 */
const CHECK_PROGRAM = `import hashlib, os, re, sys
directory, lock, allowed, host, source = sys.argv[1:]
pins = {}
for line in open(allowed):
    name, *digests = line.split()
    pins[name] = set(digests)
def refuse(why, what): sys.exit("%s. Nothing was installed. %s" % (why, what))
lines = []
with open(lock, encoding="utf-8", errors="replace") as file: gathered = file.read(1 << 20).splitlines()
for line in gathered:
    match = re.match("([a-z0-9-]+)==([a-zA-Z0-9_.+!~-]+) --hash=sha256:[0-9a-f]{64} # ([a-zA-Z0-9_.+!~-]+[.]whl)$", line)
    path = match and os.path.join(directory, match.group(3))
    if not match or os.path.islink(path) or not os.path.isfile(path):
        refuse("the lock of %s has a line that is not of a wheel" % host, "Run muster env down, then muster env up")
    name, version, wheel = match.groups()
    if name not in pins:
        if name == "pip": continue
        refuse("%s gathered %s %s, for which %s has no hash" % (host, name, version, source), "If it is needed, add it there with its hash")
    if not pins[name]:
        refuse("%s gathered %s %s, for which %s has only a weak hash (md5, sha1 or sha224)" % (host, name, version, source), "Give it one of sha256")
    digests = {each: hashlib.new(each) for each in {"sha256", *(digest.split(":")[0] for digest in pins[name])}}
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            for digest in digests.values(): digest.update(block)
    own = "sha256:" + digests["sha256"].hexdigest()
    if not any("%s:%s" % (each, digest.hexdigest()) in pins[name] for each, digest in digests.items()):
        refuse("%s gathered %s, which %s does not allow" % (host, wheel, source),
            "If you trust it, because %s built it from source, add its hash there: %s" % (host, own))
    lines.append("%s==%s --hash=%s # %s" % (name, version, own, wheel))
print("\\n".join(lines))
`

/** What another host gathered, and what the user's file allows of it. */
type Checked = {
  readonly pins: Pins
  /** The user's file, as hosts.yaml names it. */
  readonly file: string
  readonly from: string
}

export type Installing = {
  readonly prefix: string
  /** To install with its pip if the environment can get none. */
  readonly python: string
  readonly places: WheelsPlaces
  /** The lock's name in the parcel. */
  readonly content: string
  /** `own`: this host gathered the wheels; a host: the other one that did, and nothing limits what it chose. */
  readonly by: 'own' | { readonly host: string } | Checked
  /** Replaces all packages, because another host chose what is there; then notes this host, or that a file decides. */
  readonly replacing?: { readonly filler: string | undefined }
}

/** Makes the environment match the lock, offline from the parcel. */
export function installLock({ prefix, python, places, content, by, replacing }: Installing): Action {
  const { parcel, own, brought, filledBy } = places
  const checked = by !== 'own' && 'pins' in by ? by : undefined
  const refused = `refused() { if [ -f ${pathWord(brought)} ]; then rm -rf "$d" ${pathWord(brought)}; fi; exit 1; }`
  return {
    script: `umask 022
${WITHOUT_SETTINGS}${QUIET}${DIGEST}d=${pathWord(parcel)} p=${pathWord(prefix)}
# What another host sent and this one does not install is of no use to it.
${refused}
${IS_OWN} 2> /dev/null || { echo "$p/bin/python does not run, or installs outside of $p: nothing was changed" >&2; exit 1; }
${scratch(parcel)}# What has no list of its files cannot be replaced; pip puts it there anew.
for s in "$p"/lib/python[0-9]*/site-packages; do
  for i in "$s"/*.dist-info; do [ ! -d "$i" ] || [ -e "$i/RECORD" ] || rm -rf "$i"; done
done
${checked === undefined ? `lock=$d/${content}` : checkLock(content, checked)}
${by === 'own' ? `[ "$(digest "$lock")" = "$(digest ${pathWord(own)})" ] || { echo 'this host did not gather the wheels: nothing was installed' >&2; exit 1; }` : ''}
${by !== 'own' && checked === undefined ? noteFiller(filledBy, 'host' in by ? by.host : undefined) : ''}
wheel=$(sed -n 's/^pip==.* # //p' "$lock")
if [ -n "$wheel" ]; then
  # pip checks all wheels but its own.
  hash=$(sed -n 's/^pip==.* --hash=sha256:\\([0-9a-f]*\\) # .*/\\1/p' "$lock")
  [ -n "$hash" ] && [ "$(digest "$d/$wheel")" = "$hash" ] || { echo "$wheel is not the one in the lock: nothing was installed" >&2; refused; }
  set -- "$p/bin/python" -I "$d/$wheel/pip"
${ownPip(python, checked, replacing === undefined)}
fi
"$@" install --quiet --no-index --find-links "$d" --only-binary :all: --no-deps --require-hashes ${replacing === undefined ? '' : '--force-reinstall '}-r "$lock" || exit 1
extra=$("$p/bin/python" -I -c ${shellQuote(EXTRA_PROGRAM)} "$lock") || exit 1
[ -z "$extra" ] || "$@" uninstall --quiet --yes $extra || exit 1
${replacing === undefined ? '' : noteFiller(filledBy, replacing.filler)}`,
    ...(checked === undefined ? {} : { stdin: [allowedLines(checked.pins)] }),
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

function allowedLines(pins: Pins): string {
  return [...pins].map(([name, hashes]) => `${[name, ...hashes].join(' ')}\n`).join('')
}

/** Sets $lock. */
function checkLock(content: string, { from, file }: Checked): string {
  return `cat > "$t/allowed" || exit 1
lock=$t/lock
"$p/bin/python" -I -c ${shellQuote(CHECK_PROGRAM)} "$d" "$d/${content}" "$t/allowed" ${shellQuote(from)} ${shellQuote(file)} > "$lock" || refused`
}

/** A pip that no other host chose. `isPipOwn`: the one of the environment is none of another host's. */
function ownPip(python: string, checked: Checked | undefined, isPipOwn: boolean): string {
  const none =
    checked === undefined
      ? `there is no pip for ${python}: install python3-venv (or python3-pip)`
      : `there is no pip here that ${checked.from} did not send, and ${checked.file} has no hash for one. Install python3-venv here, or add pip there with its hash`
  // ensurepip leaves one that is there.
  const inside = `"$p/bin/python" -I -m pip --version > /dev/null 2>&1 || "$p/bin/python" -I -m ensurepip > /dev/null 2>&1`
  return `elif ${isPipOwn ? inside : 'false'}; then
  set -- "$p/bin/python" -I -m pip
elif ${shellQuote(python)} -I -m pip --python "$p/bin/python" --version > /dev/null 2>&1; then
  set -- ${shellQuote(python)} -I -m pip --python "$p/bin/python"
else echo ${shellQuote(none)} >&2; exit 1`
}

/** Removes "$p", the mark last, so that an interrupted removal can continue. Files of the user's stay, and their directory. */
export const VENV_REMOVE = `[ -f "$p/${MARK_FILE}" ] || { echo "$p was not made by Muster" >&2; exit 1; }
${EMPTY} && rm -f "$p/${MARK_FILE}" && { [ -n "$(ls -A "$p")" ] || rmdir "$p"; }`

export function removeVenv(prefix: string): Action {
  return { script: `p=${pathWord(prefix)}\n${VENV_REMOVE}`, timeoutMs: INSTALL_TIMEOUT_MS }
}
