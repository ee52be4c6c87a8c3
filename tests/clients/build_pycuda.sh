#!/bin/sh
# Builds PyCUDA from its source distribution against the virtual driver, into a separate environment.
#
#   tests/clients/build_pycuda.sh [FOLDER]      default: build/pycuda
#
# Run by hand: it needs a package index, the built virtual GPU and some minutes. tests/clients/test_pycuda.py then runs.
set -eu
folder=${1:-build/pycuda}
. "$(dirname "$0")/environment.sh"
$pip install setuptools wheel numpy mako pytools platformdirs nvidia-cuda-runtime nvidia-cuda-crt \
    nvidia-cuda-profiler-api
if [ ! -d "$folder/source" ]; then
    rm -rf "$folder/download"
    $pip download --no-deps --no-build-isolation --no-binary=pycuda --dest "$folder/download" pycuda
    mkdir "$folder/source"
    tar xf "$folder"/download/pycuda-*.tar.gz --strip-components=1 -C "$folder/source"
fi

# A toolkit in the layout that its build expects: the headers of the wheels, the virtual driver to link.
toolkit=$folder/toolkit
include=$("$python" -c 'import nvidia, pathlib; print(*pathlib.Path(list(nvidia.__path__)[0]).glob("*/include"))')
mkdir -p "$toolkit/lib64"
ln -sfn "$include" "$toolkit/include"
ln -sf "$libraries/libcuda.so.1" "$toolkit/lib64/libcuda.so"
ln -sf "$libraries/libcudart.so.13" "$toolkit/lib64/libcudart.so"
cd "$folder/source"
rm -f siteconf.py
"$python" configure.py --cuda-root="$toolkit" --no-cuda-enable-curand --cudadrv-lib-dir="$toolkit/lib64" \
    --cudart-lib-dir="$toolkit/lib64"
CUDA_ROOT=$toolkit "$python" setup.py --quiet build_ext --parallel 2
CUDA_ROOT=$toolkit $pip install --no-build-isolation --no-deps .
cd "$folder"
LD_LIBRARY_PATH=$libraries "$python" -c 'import pycuda.driver
print("PyCUDA", pycuda.VERSION_TEXT)'
