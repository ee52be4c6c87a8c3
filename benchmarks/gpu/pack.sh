#!/bin/sh
# Gathers what check.sh needs beside a machine's own packages: wheels for Python 3.12 and the built native parts.
#
#   benchmarks/gpu/pack.sh [FOLDER]      default: build/gpu-pack; less than 60 MB
#
# Packages that programs for the GPU bring along anyway (NumPy, Numba, pyarrow, rich, click, jinja2) are left out;
# check.sh says which of them a machine lacks. Name further ones in MORE.
set -eu
cd "$(dirname "$0")/../.."
pack=${1:-build/gpu-pack}
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || python=python3
largest=60000000
rm -rf "$pack"
mkdir -p "$pack/wheels" "$pack/native"

# The version that the tests run with.
frida=$("$python" -c 'from importlib.metadata import version; print(version("frida"))')
platforms=""
for number in 2_28 2_27 2_24 2_17 2_12 2_5; do
    platforms="$platforms --platform manylinux_${number}_x86_64"
done
# The options are several words.
# shellcheck disable=SC2086
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
    --implementation cp $platforms --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --dest "$pack/wheels" \
    "frida==$frida" msgspec orjson platformdirs pyelftools capstone cffi pycparser ${MORE:-}

built=0
for folder in ffm/instrument/lib ffm/remedy/lib; do
    for library in "$folder"/*.so*; do
        [ -e "$library" ] || continue
        mkdir -p "$pack/native/$folder"
        cp -L "$library" "$pack/native/$folder/"
        built=$((built + 1))
    done
done
if [ "$built" = 0 ]; then
    folder=$("$python" -c 'import ffm.instrument, sys; print(*(p for p in ffm.instrument.__path__ if p))' | tr ' ' '\n' |
        while read -r path; do [ ! -e "$path/lib/libffm_collector.so" ] || echo "$path/lib"; done | head -n 1)
    [ -n "$folder" ] || { echo "pack.sh: the native parts are not built; run make setup" >&2; exit 1; }
    mkdir -p "$pack/native/ffm/instrument/lib"
    cp -L "$folder"/*.so* "$pack/native/ffm/instrument/lib/"
fi

git describe --always --dirty > "$pack/commit" 2>/dev/null || echo "no checkout" > "$pack/commit"

bytes=$(find "$pack" -type f -exec cat {} + | wc -c)
(cd "$pack" && find . -type f | sort)
echo "$pack: $bytes bytes"
[ "$bytes" -lt "$largest" ] || { echo "pack.sh: that is more than $largest" >&2; exit 1; }
