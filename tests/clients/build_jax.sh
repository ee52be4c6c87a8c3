#!/bin/sh
# Installs JAX with its CUDA 13 plug-in as distributed by its developers, for the virtual GPU, into a separate
# environment.
#
#   tests/clients/build_jax.sh [FOLDER]      default: build/jax
#
# Instead of NVIDIA's closed libraries (several gigabytes), stand_ins.py builds stand-ins for those that XLA needs to
# start. Run by hand: it needs a package index, 1.2 GB of disk, the built virtual GPU and a minute.
# tests/clients/test_jax.py then runs.
set -eu
version=0.10.2
folder=${1:-build/jax}
. "$(dirname "$0")/environment.sh"
$pip install "jax==$version" "jaxlib==$version" pyelftools
$pip install --no-deps "jax-cuda13-plugin==$version" "jax-cuda13-pjrt==$version"
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
[ -d "$folder/headers" ] || $pip install --no-deps --target "$folder/headers" nvidia-cuda-runtime nvidia-cuda-crt
include=$(dirname "$(find "$folder/headers" -name cuda_runtime_api.h)")
"$python" tests/clients/stand_ins.py asked "$include" "$packages/nvidia/cu13/lib" \
    "$packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
[ -e /dev/nvidia0 ] || [ -e /dev/nvidiactl ] || {
    echo "JAX is installed; it uses a GPU only if the file /dev/nvidiactl exists: create an empty one" >&2
    exit 1
}
cd "$folder"
LD_LIBRARY_PATH=$libraries VGPU_CONFIGURATION=$root/tests/clients/device_code.vgpu JAX_PLATFORMS=cuda,cpu \
    JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 XLA_FLAGS=--xla_gpu_autotune_level=0 "$python" -c 'import jax
(jax.numpy.zeros((8, 8)) @ jax.numpy.zeros((8, 8))).block_until_ready()
print("JAX", jax.__version__, "on", jax.devices()[0].device_kind)'
