#!/bin/sh
# Builds the samples for a real GPU: build_nvcc.sh OUTPUT_FOLDER [PROGRAM...]
#
# Without PROGRAMs it builds all, as many at a time as there are processors; if nvcc refuses one, the others continue.
# NVCC: the compiler (default: nvcc). CUDA_ARCH: the GPU's architecture (default: sm_90).
# PYTHON: the interpreter for train, with the package cuda-bindings (default: python3).
# CUBLAS: a folder with cuBLAS's include/ and lib/, such as /usr/local/cuda, or site-packages/nvidia/cu13 after
# `pip install nvidia-cublas`; als then calls cuBLAS, whose driver calls are private. Otherwise als calls vblas
# as plain CUDA code.
set -eu

programs="als als_fixed amg amg_fixed fft fft_fixed flag flag_fixed gaussian gaussian_fixed ibm ibm_fixed overlap
    overlap_fixed_wait overlap_fixed_order train train_fixed"

if [ $# -lt 1 ]; then
    echo "usage: build_nvcc.sh OUTPUT_FOLDER [PROGRAM...]" >&2
    exit 2
fi
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")"
if [ $# = 1 ]; then
    # The programs are several words.
    # shellcheck disable=SC2086
    printf '%s\n' $programs | xargs -P "$(nproc)" -n 1 sh ./build_nvcc.sh "$output"
    exit
fi
shift

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
            echo "build_nvcc.sh: $CUBLAS lacks include/cublas_v2.h or lib/libcublas.so.*" >&2
            exit 1
        fi
        set -- "$@" -DALS_CUBLAS -I "$CUBLAS/include" -Xlinker "$library" -Xlinker -rpath \
            -Xlinker "$(dirname "$library")"
    fi
    build "$program" als -x cu als.cu cg.cu main.cu ratings.cpp reference.cpp "$@"
}

# fft LIBRARY PROGRAM FIXED: the closed library is next to the program, stripped.
fft() {
    build "lib$1.so" fft -shared -Xcompiler -fPIC,-fvisibility=hidden -Xlinker -s -DVFFT_ASYNC="$3" \
        -x cu library/vfft.cu
    build "$2" fft -DFFT_FIXED="$3" -I library -x cu main.cu bands.cpp -L "$output" -l"$1" -Xlinker -rpath -Xlinker '$ORIGIN'
}

# train PROGRAM FIXED: the Python program, with its kernels next to it.
train() {
    (cd train && "${NVCC:-nvcc}" -std=c++17 -O2 -fatbin -arch="${CUDA_ARCH:-sm_90}" -I ../../include train_kernels.cu \
        -o "$output/$1.fatbin")
    mv "$output/$1.fatbin" "$output/train_kernels.fatbin"
    cp train/train.py "$output/"
    sed "s|@launcher_start@|#!/usr/bin/env ${PYTHON:-python3}|; s|@fixed@|$2|" train/launcher.py.in > "$output/$1"
    chmod +x "$output/$1"
}

for wanted; do
    case $wanted in
        als) als als -DALS_FIXED=0 ;;
        als_fixed) als als_fixed -DALS_FIXED=1 ;;
        amg) build amg amg -DAMG_FIXED=0 -x cu main.cu grid.cpp ;;
        amg_fixed) build amg_fixed amg -DAMG_FIXED=1 -x cu main.cu grid.cpp ;;
        fft) fft vfft fft 0 ;;
        fft_fixed) fft vfft_async fft_fixed 1 ;;
        flag) build flag flag -DFLAG_FIXED=0 -x cu main.cu particles.cpp ;;
        flag_fixed) build flag_fixed flag -DFLAG_FIXED=1 -x cu main.cu particles.cpp ;;
        gaussian) build gaussian gaussian -DGAUSSIAN_FIXED=0 -x cu main.cu system.cpp ;;
        gaussian_fixed) build gaussian_fixed gaussian -DGAUSSIAN_FIXED=1 -x cu main.cu system.cpp ;;
        ibm) build ibm ibm -DIBM_FIXED=0 -x cu main.cu flow.cpp ;;
        ibm_fixed) build ibm_fixed ibm -DIBM_FIXED=1 -x cu main.cu flow.cpp ;;
        overlap) build overlap overlap -x cu main.cu frames.cpp ;;
        overlap_fixed_wait) build overlap_fixed_wait overlap -DOVERLAP_FIXED_WAIT=1 -x cu main.cu frames.cpp ;;
        overlap_fixed_order) build overlap_fixed_order overlap -DOVERLAP_FIXED_ORDER=1 -x cu main.cu frames.cpp ;;
        train) train train False ;;
        train_fixed) train train_fixed True ;;
        *) echo "build_nvcc.sh: there is no program $wanted" >&2; exit 2 ;;
    esac
done
