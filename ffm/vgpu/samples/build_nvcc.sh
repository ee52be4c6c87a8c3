#!/bin/sh
# Builds the samples for a real GPU: build_nvcc.sh OUTPUT_FOLDER
#
# NVCC: the compiler (default: nvcc). CUDA_ARCH: the GPU's architecture (default: sm_90).
# CUBLAS: a folder with cuBLAS's include/ and lib/, such as /usr/local/cuda, or site-packages/nvidia/cu13 after
# `pip install nvidia-cublas`; als then calls cuBLAS, whose calls of the driver are private. Without it, als calls
# vblas as plain CUDA code.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: build_nvcc.sh OUTPUT_FOLDER" >&2
    exit 2
fi
mkdir -p "$1"
output=$(cd "$1" && pwd)
if [ -n "${CUBLAS:-}" ]; then
    library=$(find -H "$CUBLAS/lib" "$CUBLAS/lib64" -name 'libcublas.so.*' 2>/dev/null | sort | head -n 1)
    if [ -z "$library" ] || [ ! -f "$CUBLAS/include/cublas_v2.h" ]; then
        echo "build_nvcc.sh: $CUBLAS holds no include/cublas_v2.h or no lib/libcublas.so.*" >&2
        exit 1
    fi
    set -- -DALS_CUBLAS -I "$CUBLAS/include" -Xlinker "$library" -Xlinker -rpath -Xlinker "$(dirname "$library")"
else
    set --
fi
cd "$(dirname "$0")/als"

for fixed in 0 1; do
    name=als
    [ $fixed = 0 ] || name=als_fixed
    "${NVCC:-nvcc}" -std=c++17 -O2 -g -lineinfo -arch="${CUDA_ARCH:-sm_90}" -DALS_FIXED=$fixed -I ../../include \
        -Xcompiler -Wall,-Wextra -x cu als.cu cg.cu main.cu ratings.cpp reference.cpp -o "$output/$name" "$@"
done
