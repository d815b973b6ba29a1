# Writes what kubelet and containerd need on a host of a lab, in the directory of this script. Arguments: ADDRESS POD_NETWORK
# NAME_SERVER CGROUP IMAGE. The file `cgroups` there lists the machine's mounts of cgroups: `KIND PLACE OPTIONS`.
set -eu
address=$1
pods=$2
name_server=$3
cgroup=$4
image=$5
here=$(dirname "$0")

# The host's own /sys has none.
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
while read -r kind place options; do
  mkdir -p "$place"
  mount -t "$kind" -o "$options" "$kind" "$place"
  mkdir -p "$place/$cgroup"
  case $options in *cpuset*) for name in cpus mems; do cat "$place/cpuset.$name" > "$place/$cgroup/cpuset.$name"; done ;; esac
done < "$here/cgroups"
# kubelet and containerd write to fixed places.
for place in /var/log /var/lib; do
  mount -t tmpfs -o size=64m,mode=755 tmpfs "$place"
done
# kubelet changes settings of the kernel, which are those of the machine, unless they are as it wants them.
mkdir "$here/sys"
while read -r name value; do
  echo "$value" > "$here/sys/${name##*/}"
  mount --bind "$here/sys/${name##*/}" "/proc/sys/$name"
done << SETTINGS
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS
mkdir -p /var/log/pods /var/log/containers /var/lib/kubelet /var/lib/cni /run/netns
mount --make-rshared /
echo 1 > /proc/sys/net/ipv4/ip_forward

mkdir -p "$here/layer/bin" "$here/layer/tmp" "$here/layer/etc" "$here/cni" "$here/containerd"
cp /bin/busybox "$here/layer/bin/"
for name in $(/bin/busybox --list); do
  [ "$name" = busybox ] || ln "$here/layer/bin/busybox" "$here/layer/bin/$name"
done
chmod 1777 "$here/layer/tmp"
echo 'root:x:0:0:root:/:/bin/sh' > "$here/layer/etc/passwd"
mkdir "$here/image"
tar --directory "$here/layer" --create --file "$here/image/layer.tar" .
digest=$(sha256sum < "$here/image/layer.tar")
cat > "$here/image/config.json" << JSON
{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":["/bin/sleep","2147483647"]},"rootfs":{"type":"layers","diff_ids":["sha256:${digest%% *}"]}}
JSON
echo "[{\"Config\":\"config.json\",\"RepoTags\":[\"$image\"],\"Layers\":[\"layer.tar\"]}]" > "$here/image/manifest.json"
tar --directory "$here/image" --create --file "$here/image.tar" config.json manifest.json layer.tar
rm -r "$here/layer" "$here/image"

cat > "$here/cni/10-lab.conflist" << JSON
{ "cniVersion": "0.4.0", "name": "lab", "plugins": [ { "type": "bridge", "bridge": "pods0", "isGateway": true,
  "ipam": { "type": "host-local", "ranges": [[{ "subnet": "$pods" }]], "routes": [{ "dst": "0.0.0.0/0" }] } } ] }
JSON
# Without CAP_SYS_RESOURCE, runc cannot lower oom_score_adj.
cat > "$here/containerd.toml" << TOML
version = 2
root = "$here/containerd/root"
state = "$here/containerd/state"
[grpc]
  address = "$here/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  sandbox_image = "$image"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "$here/cni"
    bin_dir = "/usr/lib/cni"
TOML
cat > "$here/kubelet.yaml" << YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
cgroupRoot: /$cgroup
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix://$here/containerd.sock
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
address: $address
readOnlyPort: 0
healthzPort: 0
clusterDNS: [$name_server]
clusterDomain: cluster.local
resolvConf: ""
localStorageCapacityIsolation: false
nodeStatusUpdateFrequency: 2s
evictionHard: { memory.available: 50Mi }
YAML
