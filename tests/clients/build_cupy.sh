#!/bin/sh
# Installs CuPy as distributed by its developers, for the virtual GPU, into a separate environment.
#
#   tests/clients/build_cupy.sh [FOLDER]      default: build/cupy
#
# CuPy has NVIDIA's runtime linked in, which hides the names of its calls. The tests look at these names, so the one module
# that makes the calls is compiled again, from CuPy's own source distribution of the same version, and linked with
# libcudart. To compute, the wheel needs no more than CUPY_COMPILE_WITH_PTX=1: count_cupy.py runs CuPy's own tests on it.
# Run by hand: it needs a package index, the built virtual GPU and a minute. tests/clients/test_cupy.py then runs.
set -eu
folder=${1:-build/cupy}
. "$(dirname "$0")/environment.sh"
$pip install setuptools wheel cupy-cuda13x cuda-core cuda-bindings nvidia-cuda-runtime nvidia-cuda-crt \
    nvidia-cuda-profiler-api nvidia-cuda-nvrtc nvidia-cuda-cccl
version=$("$python" -c 'from importlib.metadata import version; print(version("cupy-cuda13x"))')

# With READTHEDOCS set, CuPy reports its metadata without looking for a toolkit, as its source distribution otherwise does.
if [ ! -d "$folder/cupy-$version" ]; then
    READTHEDOCS=True $pip download --no-deps --no-binary=cupy --dest "$folder" "cupy==$version"
    tar xf "$folder/cupy-$version.tar.gz" -C "$folder"
fi
module=$("$python" -c 'import importlib.util as u; print(u.find_spec("cupy_backends.cuda.api.runtime").origin)')
cython=$(strings "$module" | sed -n 's/^_cython_\([0-9]*\)_\([0-9]*\)_\([0-9]*\)$/\1.\2.\3/p' | head -n 1)
if [ -n "$cython" ]; then
    $pip install "cython==$cython" # the version that built the other modules: they share its types
    echo "$cython" > "$folder/cython-version"
else
    $pip install "cython==$(cat "$folder/cython-version")"
fi
include=$("$python" -c 'import nvidia, pathlib; print(*pathlib.Path(list(nvidia.__path__)[0]).glob("*/include"))')
interpreter=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
cd "$folder/cupy-$version"
"$folder/env/bin/cython" -3 --cplus -E CUPY_CUDA_VERSION=13000,CUPY_HIP_VERSION=0,CUPY_USE_CUDA_PYTHON=False \
    cupy_backends/cuda/api/runtime.pyx -o cupy_backends/cuda/api/runtime.cpp 2>"$folder/cython.log"
g++ -O1 -w -shared -fPIC "-I$interpreter" "-I$include" -DCUPY_CUDA_VERSION=13000 cupy_backends/cuda/api/runtime.cpp \
    -o "$module" "-L$libraries" -lcudart "-Wl,-rpath,$libraries" -Wl,--no-undefined-version -Wl,-z,now
cd "$folder"
LD_LIBRARY_PATH=$libraries "$python" -c 'import cupy; print("CuPy", cupy.__version__,
    "on a device of", cupy.cuda.Device().mem_info[1] >> 30, "GiB")'
