"""A conda channel byte for byte as a server has it: conda-channel.py DIRECTORY. Its python is the one that runs this, copied."""
import bz2
import hashlib
import io
import json
import os
import sys
import tarfile

root = sys.argv[1]
PLACE = "/opt/" + "placehold_" * 20
TIME = 1700000000


def package(subdir, name, version, build, files, depends=()):
    """files: path → (bytes, mode, whether the prefix stands in it)."""
    index = {"name": name, "version": version, "build": build, "build_number": 0, "subdir": subdir, "depends": list(depends)}
    noarch = {"noarch": "generic", "arch": None, "platform": None} if subdir == "noarch" else {"arch": "x86_64", "platform": "linux"}
    index.update(noarch)
    place = {"prefix_placeholder": PLACE, "file_mode": "text"}
    paths = [
        {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data), **(place if has else {})}
        for path, (data, _, has) in sorted(files.items())
    ]
    info = {
        "index.json": json.dumps(index),
        "paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "files": "".join(path + "\n" for path in sorted(files)),
        "about.json": "{}",
    }
    prefixed = "".join("%s text %s\n" % (PLACE, path) for path in sorted(files) if files[path][2])
    if prefixed:
        info["has_prefix"] = prefixed
    parts = [("info/" + path, text.encode(), 0o644) for path, text in info.items()]
    parts += [(path, data, mode) for path, (data, mode, _) in sorted(files.items())]
    file = "%s-%s-%s.tar.bz2" % (name, version, build)
    os.makedirs(os.path.join(root, subdir), exist_ok=True)
    with tarfile.open(os.path.join(root, subdir, file), "w:bz2") as tar:
        for path, data, mode in parts:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(data), mode, TIME
            tar.addfile(entry, io.BytesIO(data))
    with open(os.path.join(root, subdir, file), "rb") as made:
        data = made.read()
    sums = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    return subdir, file, {**index, **sums}


with open(sys.executable, "rb") as interpreter:
    python = interpreter.read()
version, minor = "%d.%d.%d" % sys.version_info[:3], "%d.%d" % sys.version_info[:2]
packages = [
    package("linux-64", "python", version, "0", {"bin/python" + minor: (python, 0o755, False), "bin/python": (python, 0o755, False)}),
    package("noarch", "lab-data", "1.2.0", "0", {"share/lab-data/list": (b"a list\n", 0o644, False)}),
    package("linux-64", "lab-tool", "0.9", "h1_0", {"bin/lab-tool": (("#!/bin/sh\necho " + PLACE + "\n").encode(), 0o755, True)}, ["lab-data >=1", "python"]),
]
for subdir in ("linux-64", "noarch"):
    known = {file: index for place, file, index in packages if place == subdir}
    text = json.dumps({"info": {"subdir": subdir}, "packages": known, "repodata_version": 1}).encode()
    for name, data in (("repodata.json", text), ("repodata.json.bz2", bz2.compress(text))):
        with open(os.path.join(root, subdir, name), "wb") as target:
            target.write(data)
with open(os.path.join(root, "explicit.txt"), "w") as target:
    target.write("# platform: linux-64\n@EXPLICIT\n")
    for subdir, file, index in packages:
        target.write("file://%s/%s/%s#%s\n" % (root, subdir, file, index["md5"]))
