# Builds Kubernetes' programs. Arguments: DIRECTORY (to write) SOURCE (a Go module).
set -eu
directory=$1
source=$2
# This version of Go or a later one, of the machine or else of the proxy for Go modules.
toolchain=go1.26.8
# Of https://proxy.golang.org/golang.org/toolchain/@v/v0.0.1-go1.26.8.linux-amd64.zip
toolchain_sha256=30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7

trap 'rm -rf "$directory.new"' EXIT
rm -rf "$directory.new"
mkdir -p "$directory.new/build/tmp" "$directory.new/build/source" "$directory.new/bin"
build=$directory.new/build
export TMPDIR="$build/tmp" GOCACHE="$build/cache" GOMODCACHE="$build/modules" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 GOWORK=off

is_new_enough() {
  [ -x "$1" ] || return 1
  found=$("$1" env GOVERSION) && [ "$(printf '%s\n' "$toolchain" "$found" | sort -V | head -1)" = "$toolchain" ]
}

go=
for candidate in "$(command -v go || :)" /usr/local/go/bin/go; do
  if is_new_enough "$candidate"; then go=$candidate; break; fi
done
if [ -z "$go" ]; then
  [ "$(uname -m)" = x86_64 ] || { echo "Kubernetes needs $toolchain or later to be built: install it in /usr/local/go" >&2; exit 1; }
  python3 - "${GOPROXY:-https://proxy.golang.org}" "$toolchain" "$toolchain_sha256" "$build" << 'PYTHON' || {
import hashlib, io, os, re, sys, urllib.request, zipfile
proxies, toolchain, sha256, build = sys.argv[1:]
proxy = next(each for each in re.split('[,|]', proxies) if each.startswith('http'))
name = f'golang.org/toolchain@v0.0.1-{toolchain}.linux-amd64'
with urllib.request.urlopen(f"{proxy}/{name.replace('@', '/@v/')}.zip", timeout=300) as answer:
    data = answer.read()
if hashlib.sha256(data).hexdigest() != sha256:
    sys.exit(f'{name} of {proxy} is not the one that is expected')
zipfile.ZipFile(io.BytesIO(data)).extractall(build)
os.rename(os.path.join(build, name), os.path.join(build, 'go'))
PYTHON
    echo "cannot get $toolchain, which Kubernetes is built with. Install it in /usr/local/go, or set GOPROXY to a proxy of Go modules" >&2
    exit 1
  }
  chmod -R +x "$build/go/bin" "$build/go/pkg/tool"
  go=$build/go/bin/go
fi

cp "$source"/* "$build/source/"
cd "$build/source"
package=k8s.io/component-base/version
version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[^ ]*\)$/\1/p' go.mod)
minor=${version#v1.}
"$go" build -mod=readonly -trimpath -buildvcs=false -o "$directory.new/bin/kubernetes" \
  -ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}" .
cd /
for name in kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl kwok; do
  ln -s kubernetes "$directory.new/bin/$name"
done
"$directory.new/bin/kubectl" version --client > "$directory.new/version"
rm -rf "$build"
mv "$directory.new" "$directory"
