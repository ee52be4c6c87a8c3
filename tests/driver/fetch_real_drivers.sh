#!/bin/sh
# Fetches builds of NVIDIA's driver library from Debian's non-free component and unpacks them into a folder; nothing
# is installed. The tests in test_real_drivers.py look there.
#
#   fetch_real_drivers.sh [FOLDER]
set -eu
folder=${1:-${FFM_REAL_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/ffm/real-drivers}}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || { echo "$keyring is missing: install debian-archive-keyring." >&2; exit 1; }
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
for package in libcuda1/bookworm libcuda1/trixie libcuda1/experimental libnvidia-tesla-418-cuda1/sid \
    libnvidia-tesla-450-cuda1/sid libnvidia-tesla-470-cuda1/sid; do
    # shellcheck disable=SC2086
    apt-get $options download "$package" || echo "no $package" >&2
done
for package in *.deb; do
    dpkg -x "$package" "$folder/${package%.deb}"
done
find "$folder" -type f -name 'libcuda.so.*'
