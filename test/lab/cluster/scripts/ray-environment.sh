# Makes the Python environment with Ray, in a mount namespace of its own. Arguments: DIRECTORY (to write) PLACE (where hosts see
# it) REQUIREMENTS.
set -eu
directory=$1
place=$2
requirements=$3

rm -rf "$directory.new"
mkdir "$directory.new"
cp "$requirements" "$directory.new/requirements.txt"
mount --bind "$directory.new" "$place"
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --requirement "$place/requirements.txt"
"$place/venv/bin/python" -c 'import ray, aiohttp'
umount "$place"
mv "$directory.new" "$directory"
