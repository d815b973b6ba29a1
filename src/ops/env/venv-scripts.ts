/** The scripts for virtual environments: wheels are gathered once, with a lock, and installed everywhere without a network. */
import { pathWord } from '../kernel/files.ts'
import { quote } from '../kernel/finding.ts'
import type { Action } from '../kernel/operation.ts'
import { MARK_FILE } from './facts.ts'

const FETCH_TIMEOUT_MS = 60 * 60_000
const INSTALL_TIMEOUT_MS = 30 * 60_000

/** What a person has configured for pip counts where it fetches; nothing is asked and nothing kept beside. */
const QUIET = `PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_NO_COLOR=1
PIP_PROGRESS_BAR=off PIP_REQUIRE_VIRTUALENV=0
export PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT PIP_ROOT_USER_ACTION PIP_NO_CACHE_DIR PIP_NO_COLOR PIP_PROGRESS_BAR PIP_REQUIRE_VIRTUALENV
`

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

export type Gathering = {
  readonly python: string
  /** Where the environment is or will be; its pip may be the only one. */
  readonly prefix: string
  readonly parcel: string
  /** The lock's name in it. */
  readonly content: string
  /** Wheels that a person laid there. */
  readonly wheels?: string
  /** What pip reads, and whether it is all: pins of another environment. */
  readonly requirements: string
  readonly isComplete: boolean
}

/** Finds the wheels in what is there, or else fetches them; ends with the lock in the parcel. */
export function gatherWheels({ python, prefix, parcel, content, wheels, requirements, isComplete }: Gathering): Action {
  const deps = isComplete ? '--no-deps ' : ''
  const others = wheels === undefined ? '' : ` ${pathWord(wheels)}`
  return {
    script: `umask 022
${QUIET}d=${pathWord(parcel)} p=${pathWord(prefix)} python=${quote(python)}
command -v "$python" > /dev/null || { echo "$python is not installed" >&2; exit 1; }
mkdir -p "$d" || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
trap 'exit 1' HUP INT TERM
cat > "$t/requirements.txt" || exit 1
lock() { "$python" -c ${quote(LOCK_PROGRAM)} "$d" "$t/report"${others} > "$t/lock"; }
finish() { rm -f "$d"/content-* && cp "$t/lock" "$d/${content}.part" && mv -f "$d/${content}.part" "$d/${content}"; }
wheel=$(ls "$d"/pip-*.whl${others === '' ? '' : `${others}/pip-*.whl`} 2> /dev/null | tail -n 1)
resolve() {
  "$@" install --dry-run --ignore-installed --quiet --report "$t/report" --no-index --find-links "$d"${
    others === '' ? '' : ` --find-links${others}`
  } ${deps}-r "$t/requirements.txt"
}
if [ -n "$wheel" ] && resolve "$python" "$wheel/pip" 2> /dev/null && lock; then finish; exit; fi
if "$p/bin/python" -m pip --version > /dev/null 2>&1; then set -- "$p/bin/python" -m pip
elif "$python" -m pip --version > /dev/null 2>&1; then set -- "$python" -m pip
elif command -v uv > /dev/null; then set -- uv tool run pip
elif "$python" -m venv "$t/venv" > /dev/null 2>&1; then set -- "$t/venv/bin/python" -m pip
else echo "there is no pip for $python: install python3-venv (or python3-pip, or uv)" >&2; exit 1
fi
"$@" download --quiet --no-deps --dest "$d" pip || exit 1
wheel=$(ls -t "$d"/pip-*.whl | head -n 1)
set -- "$python" "$wheel/pip"
"$@" wheel --quiet --wheel-dir "$d" --find-links "$d"${others === '' ? '' : ` --find-links${others}`} ${deps}-r "$t/requirements.txt" &&
  resolve "$@" && lock && finish`,
    stdin: [requirements],
    timeoutMs: FETCH_TIMEOUT_MS,
  }
}

/** Makes an empty environment, or makes one of Muster's anew whose interpreter is gone. */
export function makeVenv(python: string, prefix: string, parcel: string, key: string): Action {
  return {
    script: `umask 022
p=${pathWord(prefix)} python=${quote(python)}
command -v "$python" > /dev/null || { echo "$python is not installed" >&2; exit 1; }
if [ -f "$p/${MARK_FILE}" ]; then find "$p" -mindepth 1 -maxdepth 1 ! -name ${MARK_FILE} -exec rm -rf {} + || exit 1; fi
mkdir -p "$p" && echo ${quote(`venv ${key}`)} > "$p/${MARK_FILE}" || exit 1
# With the wheel of pip in the parcel nothing else is needed of the system.
if ls ${pathWord(parcel)}/pip-*.whl > /dev/null 2>&1; then "$python" -m venv --without-pip "$p"; else "$python" -m venv "$p"; fi`,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

/** What is not in the lock and does not install others. */
const EXTRA_PROGRAM = `import re, sys
from importlib import metadata
def normal(name): return re.sub(r"[-_.]+", "-", name).lower()
wanted = {line.split("==")[0] for line in open(sys.argv[1])} | {"pip", "setuptools", "wheel", "pkg-resources"}
names = {dist.metadata["Name"] for dist in metadata.distributions(path=[path for path in sys.path if path.startswith(sys.prefix)])}
print("\\n".join(sorted(name for name in names if name and normal(name) not in wanted)))
`

/** Makes what is installed what the lock says, out of the parcel alone. */
export function installLock(prefix: string, parcel: string, content: string): Action {
  return {
    script: `umask 022
${QUIET}d=${pathWord(parcel)} p=${pathWord(prefix)}
# What has no list of its files cannot be replaced; pip puts it there anew.
for s in "$p"/lib/python[0-9]*/site-packages; do
  for i in "$s"/*.dist-info; do [ ! -d "$i" ] || [ -e "$i/RECORD" ] || rm -rf "$i"; done
done
wheel=$(sed -n 's/^pip==.* # //p' "$d/${content}")
if [ -n "$wheel" ]; then set -- "$p/bin/python" "$d/$wheel/pip"; else set -- "$p/bin/python" -m pip; fi
"$@" install --quiet --no-index --find-links "$d" --no-deps --require-hashes -r "$d/${content}" || exit 1
extra=$("$p/bin/python" -I -c ${quote(EXTRA_PROGRAM)} "$d/${content}") || exit 1
[ -z "$extra" ] || "$@" uninstall --quiet --yes $extra`,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

/** The mark goes last, so that a removal that was cut is carried on. */
export function removeVenv(prefix: string): Action {
  return {
    script: `p=${pathWord(prefix)}
[ -f "$p/${MARK_FILE}" ] || { echo "$p was not made by Muster" >&2; exit 1; }
find "$p" -mindepth 1 -maxdepth 1 ! -name ${MARK_FILE} -exec rm -rf {} + && rm -f "$p/${MARK_FILE}" && rmdir "$p"`,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}
