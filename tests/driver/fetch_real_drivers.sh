#!/bin/sh
# Fetches builds of NVIDIA's driver library from Debian's non-free component and unpacks them into a folder; nothing
# is installed. The tests in test_real_drivers.py look there.
#
#   fetch_real_drivers.sh [FOLDER]
set -eu
folder=${1:-${FFM_REAL_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/ffm/real-drivers}}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || { echo "$keyring is missing: install debian-archive-keyring." >&2; exit 1; }
wanted="libcuda1/bookworm libcuda1/trixie libcuda1/experimental libnvidia-tesla-418-cuda1/sid
    libnvidia-tesla-450-cuda1/sid libnvidia-tesla-470-cuda1/sid"
if [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ]; then
    echo "the drivers are in $folder; remove it to fetch them again"
    exit 0
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/state" "$work/packages"
for suite in bookworm trixie experimental sid; do
    echo "deb [arch=amd64 signed-by=$keyring] http://deb.debian.org/debian $suite non-free"
done >"$work/sources.list"
options="-q -o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=$work/none
    -o Dir::State=$work/state -o Dir::State::Lists=$work/lists -o Dir::Cache=$work/cache
    -o APT::Architecture=amd64 -o APT::Sandbox::User=$(id -un)"
# The options are several words.
# shellcheck disable=SC2086
apt-get $options update
cd "$work/packages"
complete=yes
for package in $wanted libnvidia-tesla-418-fatbinaryloader/sid; do
    # shellcheck disable=SC2086
    apt-get $options download "$package" || { echo "no $package" >&2; complete=; }
done
for package in *cuda1_*.deb; do
    dpkg -x "$package" "$folder/${package%.deb}"
done
# The oldest one needs another library, which its loader finds through LD_LIBRARY_PATH.
for package in *fatbinaryloader_*.deb; do
    [ ! -e "$package" ] || dpkg -x "$package" loader
done
for driver in "$folder"/*tesla-418*/usr/lib/*/nvidia/tesla-418; do
    [ ! -d "$driver" ] || find loader -name 'libnvidia-fatbinaryloader.so.*' -type f -exec cp {} "$driver" \;
done
[ -z "$complete" ] || echo "$wanted" >"$folder/.complete"
find "$folder" -type f -name 'libcuda.so.*'
