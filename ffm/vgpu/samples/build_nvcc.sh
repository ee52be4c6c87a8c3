#!/bin/sh
# Builds the samples for a real GPU: build_nvcc.sh OUTPUT_FOLDER
#
# NVCC: the compiler (default: nvcc). CUDA_ARCH: the GPU's architecture (default: sm_90).
# PYTHON: the interpreter for train, with the package cuda-bindings (default: python3).
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
cd "$(dirname "$0")"

# build PROGRAM FOLDER [SOURCE or OPTION...]: builds $output/PROGRAM in FOLDER.
build() {
    program=$1
    folder=$2
    shift 2
    (cd "$folder" && "${NVCC:-nvcc}" -std=c++17 -O2 -g -lineinfo -arch="${CUDA_ARCH:-sm_90}" -I ../../include \
        -I ../common -Xcompiler -Wall,-Wextra "$@" -o "$output/$program")
}

# als PROGRAM DEFINITION
als() {
    program=$1
    shift
    if [ -n "${CUBLAS:-}" ]; then
        library=$(find -H "$CUBLAS/lib" "$CUBLAS/lib64" -name 'libcublas.so.*' 2>/dev/null | sort | head -n 1)
        if [ -z "$library" ] || [ ! -f "$CUBLAS/include/cublas_v2.h" ]; then
            echo "build_nvcc.sh: $CUBLAS holds no include/cublas_v2.h or no lib/libcublas.so.*" >&2
            exit 1
        fi
        set -- "$@" -DALS_CUBLAS -I "$CUBLAS/include" -Xlinker "$library" -Xlinker -rpath \
            -Xlinker "$(dirname "$library")"
    fi
    build "$program" als -x cu als.cu cg.cu main.cu ratings.cpp reference.cpp "$@"
}

als als -DALS_FIXED=0
als als_fixed -DALS_FIXED=1
build amg amg -DAMG_FIXED=0 -x cu main.cu grid.cpp
build amg_fixed amg -DAMG_FIXED=1 -x cu main.cu grid.cpp
build gaussian gaussian -DGAUSSIAN_FIXED=0 -x cu main.cu system.cpp
build gaussian_fixed gaussian -DGAUSSIAN_FIXED=1 -x cu main.cu system.cpp
build flag flag -DFLAG_FIXED=0 -x cu main.cu particles.cpp
build flag_fixed flag -DFLAG_FIXED=1 -x cu main.cu particles.cpp
build ibm ibm -DIBM_FIXED=0 -x cu main.cu flow.cpp
build ibm_fixed ibm -DIBM_FIXED=1 -x cu main.cu flow.cpp

# fft LIBRARY PROGRAM FIXED: the closed library lies beside the program, stripped.
fft() {
    build "lib$1.so" fft -shared -Xcompiler -fPIC,-fvisibility=hidden -Xlinker -s -DVFFT_ASYNC="$3" \
        -x cu library/vfft.cu
    build "$2" fft -DFFT_FIXED="$3" -I library -x cu main.cu bands.cpp -L "$output" -l"$1" -Xlinker -rpath -Xlinker '$ORIGIN'
}

fft vfft fft 0
fft vfft_async fft_fixed 1
build overlap overlap -x cu main.cu frames.cpp
build overlap_fixed_wait overlap -DOVERLAP_FIXED_WAIT=1 -x cu main.cu frames.cpp
build overlap_fixed_order overlap -DOVERLAP_FIXED_ORDER=1 -x cu main.cu frames.cpp

# The Python program, with its kernels beside it.
(cd train && "${NVCC:-nvcc}" -std=c++17 -O2 -fatbin -arch="${CUDA_ARCH:-sm_90}" -I ../../include train_kernels.cu \
    -o "$output/train_kernels.fatbin")
cp train/train.py "$output/"
for program in train:False train_fixed:True; do
    sed "s|@Python3_EXECUTABLE@|/usr/bin/env ${PYTHON:-python3}|; s|@fixed@|${program#*:}|" train/launcher.py.in \
        > "$output/${program%:*}"
    chmod +x "$output/${program%:*}"
done
