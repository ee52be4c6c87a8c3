#!/bin/sh
# Builds the samples for a real GPU: build_nvcc.sh OUTPUT_FOLDER
#
# NVCC: the compiler (default: nvcc). CUDA_ARCH: the GPU's architecture (default: sm_90).
# CUBLAS: a folder with cuBLAS's include/ and lib/, where the toolkit has none, such as site-packages/nvidia/cu13
# after `pip install nvidia-cublas`.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: build_nvcc.sh OUTPUT_FOLDER" >&2
    exit 2
fi
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")/als"

set -- -l cublas
if [ -n "${CUBLAS:-}" ]; then
    library=$(ls "$CUBLAS"/lib/libcublas.so.* | head -n 1)
    set -- -I "$CUBLAS/include" -Xlinker "$library" -Xlinker -rpath -Xlinker "$CUBLAS/lib"
fi

for fixed in 0 1; do
    name=als
    [ $fixed = 0 ] || name=als_fixed
    "${NVCC:-nvcc}" -std=c++17 -O2 -g -lineinfo -arch="${CUDA_ARCH:-sm_90}" -DALS_FIXED=$fixed -I ../../include \
        -Xcompiler -Wall,-Wextra -x cu als.cu cg.cu main.cu ratings.cpp reference.cpp -o "$output/$name" "$@"
done
