/** Wheels of one line of Python, and the system's own wheel of pip, for environments without a package index. */
import { execFileSync } from 'node:child_process'

const PYTHON = '/usr/bin/python3'

const MAKE = `import sys, zipfile
directory, name, word = sys.argv[1:]
info = name + "-1.0.dist-info/"
with zipfile.ZipFile("%s/%s-1.0-py3-none-any.whl" % (directory, name), "w") as wheel:
    wheel.writestr(name + ".py", "print('%s')\\n" % word)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n" % name)
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "".join(each + ",,\\n" for each in [name + ".py", info + "METADATA", info + "WHEEL", info + "RECORD"]))
`

/** Debian keeps it apart from ensurepip. */
const COPY_PIP = `import ensurepip, glob, os, shutil, sys, sysconfig
place = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
shutil.copy(glob.glob(os.path.join(place, "pip-*.whl"))[0], sys.argv[1])
`

/** Version 1.0; the module has the package's name and prints a word. */
export function makeTinyWheel(directory: string, name: string, word = 'brought'): void {
  execFileSync(PYTHON, ['-c', MAKE, directory, name, word])
}

/** Needs `python environments` (requirements.ts). */
export function copyPipWheel(directory: string): void {
  execFileSync(PYTHON, ['-c', COPY_PIP, directory])
}
