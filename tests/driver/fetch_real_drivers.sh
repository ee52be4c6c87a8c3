#!/bin/sh
# Fetches builds of NVIDIA's driver library from Debian's non-free component and unpacks them into a folder; nothing
# is installed. The tests in test_real_drivers.py look there.
#
#   fetch_real_drivers.sh [FOLDER]
set -eu
fetch=$(cd "$(dirname "$0")/.." && pwd)/fetch_packages.sh
folder=${1:-${FFM_REAL_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/ffm/real-drivers}}
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
cd "$work"
complete=yes
# The names are several words.
# shellcheck disable=SC2086
sh "$fetch" non-free $wanted libnvidia-tesla-418-fatbinaryloader/sid || complete=
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
