#!/bin/sh
# Fetches Debian's builds of CPython 3.14 and 3.15, with the C library that they need, and unpacks them into a
# folder; nothing is installed. The tests in test_python_frames.py look there.
#
#   fetch_pythons.sh PATCHELF [FOLDER]
set -eu
fetch=$(cd "$(dirname "$0")/.." && pwd)/fetch_packages.sh
patchelf=$(command -v "$1" && true) || { echo "no program $1" >&2; exit 1; }
patchelf=$(realpath "$patchelf")
folder=${2:-${FFM_PYTHONS:-${XDG_CACHE_HOME:-$HOME/.cache}/ffm/pythons}}
wanted="libc6/forky zlib1g/forky libexpat1/forky libffi8/forky
    libpython3.14-minimal/forky libpython3.14-stdlib/forky python3.14-minimal/forky
    libpython3.15-minimal/forky libpython3.15-stdlib/forky python3.15-minimal/forky"
if [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ]; then
    echo "the interpreters are in $folder; remove it to fetch them again"
    exit 0
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# The names are several words.
# shellcheck disable=SC2086
sh "$fetch" main $wanted
for package in *.deb; do
    dpkg -x "$package" "$folder"
done
libraries=$folder/usr/lib/x86_64-linux-gnu
for version in 3.14 3.15; do
    "$patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" \
        "$folder/usr/bin/python$version"
    "$folder/usr/bin/python$version" -VV
done
echo "$wanted" >"$folder/.complete"
