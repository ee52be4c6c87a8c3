#!/bin/sh
# Gathers what check.sh needs besides a machine's own packages: wheels for Python 3.12 and the freshly built native parts.
#
#   benchmarks/gpu/pack.sh [FOLDER]      default: build/gpu-pack; less than 60 MB
#
# packages.py names those that are packed, and those that a machine for GPU programs has; check.sh says which of them a
# machine lacks. MORE names further ones to include.
set -eu
cd "$(dirname "$0")/../.."
pack=${1:-build/gpu-pack}
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || python=python3
largest=60000000
rm -rf "$pack"
mkdir -p build "$pack/wheels"

# The version that the tests run with.
frida=$("$python" -c 'from importlib.metadata import version; print(version("frida"))')
packages=$("$python" benchmarks/gpu/packages.py | sed "s/\\bfrida\\b/frida==$frida/")
platforms=""
for number in 2_28 2_27 2_24 2_17 2_12 2_5; do
    platforms="$platforms --platform manylinux_${number}_x86_64"
done
# The options are several words.
# shellcheck disable=SC2086
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
    --implementation cp $platforms --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --dest "$pack/wheels" \
    $packages ${MORE:-}
"$python" benchmarks/gpu/packages.py "$pack/wheels"

# Rebuilt, because the build in the checkout may be older than its sources. Everything that these folders install is
# packed, with the libunwind that it links.
build=build/gpu-native
parts="ffm/instrument/native"
cmake -S . -B "$build" -G Ninja -DPython3_EXECUTABLE="$(command -v "$python")" >"$build.log" 2>&1 || refused=cmake
for part in $parts; do
    if [ -z "${refused:-}" ]; then
        { cmake --build "$build" --target "$part/all" && cmake --install "$build/$part" --strip --prefix "$pack/native"; } \
            >>"$build.log" 2>&1 || refused=$part
    fi
done
[ -z "${refused:-}" ] || {
    tail -n 20 "$build.log" >&2
    echo "pack.sh: the native parts cannot be built ($refused); see $build.log" >&2
    exit 1
}

git describe --always --dirty > "$pack/commit" 2>/dev/null || echo "no checkout" > "$pack/commit"

bytes=$(find "$pack" -type f -exec cat {} + | wc -c)
(cd "$pack" && find . -type f | sort)
echo "$pack: $bytes bytes"
[ "$bytes" -lt "$largest" ] || { echo "pack.sh: that is more than $largest" >&2; exit 1; }
