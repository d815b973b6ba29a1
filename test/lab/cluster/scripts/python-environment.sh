# Makes a Python environment, in a mount namespace of its own. Arguments: DIRECTORY (to write) PLACE (where hosts see it)
# REQUIREMENTS IMPORTS (Python that must run in it) [OPTION of venv].
set -eu
directory=$1
place=$2
requirements=$3
imports=$4
shift 4

# What Horovod is compiled for.
export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
# Else it compiles eight files at a time, each of which takes a gigabyte.
export MAKEFLAGS="-j$(nproc)"
# pip builds in a directory of its own, since that of a failed build is large.
rm -rf "$directory.new"
mkdir -p "$directory.new/build"
cp "$requirements" "$directory.new/requirements.txt"
mount --bind "$directory.new" "$place"
export TMPDIR="$place/build"
python3 -m venv "$@" "$place/venv"
# Without isolation, since what is compiled against torch has to find it. The lists are complete.
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-build-isolation \
  --retries 10 --requirement "$place/requirements.txt"
# Of vLLM, whose requirements are missing, tests only read the text.
find "$place/venv" -path '*/site-packages/vllm/*.so' -delete
"$place/venv/bin/python" -c "$imports"
rm -rf "$place/build"
umount "$place"
mv "$directory.new" "$directory"
