#!/usr/bin/env sh
# Build the image of deploy/Dockerfile with docker, podman or buildah, and try it: the doctor, remembering, searching, and a
# client that speaks MCP over stdin and stdout. Where the registry of images is out of reach, --debian makes a base image from
# Debian's packages first (buildah and debootstrap, as root): the same Debian and Python as the official one.
# sh tools/image.sh [--debian]
set -eu
cd "$(dirname "$0")/.."
engine=$(command -v docker >/dev/null && docker info >/dev/null 2>&1 && echo docker || true)
for one in podman buildah; do
    [ -n "$engine" ] || ! command -v "$one" >/dev/null || engine=$one
done
[ "${1:-}" != --debian ] || engine=buildah
[ -n "$engine" ] || { echo "no docker, podman or buildah is here, or none runs" >&2; exit 1; }
tag=rlm-mem:tried
mounts=""

if [ "$engine" = buildah ]; then
    # Without an engine's rights: steps run in a chroot.
    BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
    export BUILDAH_ISOLATION STORAGE_DRIVER
    # By these pip reaches its index from behind a proxy.
    for path in /etc/pip.conf /etc/ssl/certs; do
        [ ! -e "$path" ] || mounts="$mounts --volume $path:$path:ro"
    done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${1:-}" = --debian ]; then
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$work/root" >"$work/log" ||
        { tail -20 "$work/log"; exit 1; }
    ln -s python3 "$work/root/usr/bin/python"
    base=$(buildah from scratch)
    buildah add --quiet "$base" "$work/root" / >/dev/null
    buildah config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$base"
    buildah commit --quiet "$base" docker.io/library/python:3.13-slim >/dev/null
    buildah rm "$base" >/dev/null
fi

case $engine in
buildah)
    # shellcheck disable=SC2086  # several options
    buildah bud $mounts --ignorefile deploy/Dockerfile.dockerignore --file deploy/Dockerfile --tag "$tag" . >"$work/log" 2>&1 ||
        { tail -30 "$work/log"; exit 1; }
    held=$(buildah from --pull-never "$tag")
    run() { buildah run "$held" -- rlm-mem "$@"; }
    clean() { buildah rm "$held" >/dev/null; }
    ;;
*)
    "$engine" build --quiet --file deploy/Dockerfile --tag "$tag" . >/dev/null
    held=rlm-mem-tried-$$
    run() { "$engine" run --rm --interactive --volume "$held:/data" "$tag" "$@"; }
    clean() { "$engine" volume rm "$held" >/dev/null; }
    ;;
esac

run store init
run remember "We chose PostgreSQL because of its row-level security."
run search "row-level security" | grep -q PostgreSQL
run recall "Why did we choose PostgreSQL?" | grep "row-level"
run doctor | grep -v "^ok" || true
hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"image","version":"1"}}}'
{ echo "$hello"; sleep 5; } | run mcp | grep -q '"serverInfo"'
clean
echo "$engine: built; the image remembers, answers and speaks MCP"
