#!/bin/sh
# Installs PyTorch's CUDA build as distributed by its developers, for the virtual GPU, into a separate environment.
#
#   tests/clients/build_torch.sh [FOLDER]      default: build/torch
#
# Only the small packages that it needs are installed: stand_ins.py builds stand-ins for NVIDIA's closed libraries
# (several gigabytes), which refuse everything except matrix products. Run by hand: it needs a package index, 2 GB of
# disk, the built virtual GPU and some minutes. tests/clients/test_torch.py then runs.
set -eu
folder=${1:-build/torch}
. "$(dirname "$0")/environment.sh"
$pip install filelock typing-extensions sympy networkx jinja2 fsspec numpy pyelftools
if ! "$python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch") != "2.13.0")' 2>/dev/null; then
    $pip install --no-deps "torch===2.13.0" # exactly: builds such as 2.13.0+cpu count as newer
fi
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
[ -e "$packages/torch/lib/libtorch_cuda.so" ] || { echo "the index gave PyTorch without CUDA" >&2; exit 1; }
# Only headers, in another place: next to PyTorch, NVIDIA's own runtime would be found before ours.
[ -d "$folder/headers" ] || $pip install --no-deps --target "$folder/headers" nvidia-cuda-runtime nvidia-cuda-crt
include=$(dirname "$(find "$folder/headers" -name cuda_runtime_api.h)")
"$python" tests/clients/stand_ins.py linked "$include" "$packages/nvidia/cu13/lib" "$packages"/torch/lib/*.so
cd "$folder"
LD_LIBRARY_PATH=$libraries VGPU_CONFIGURATION=$root/tests/clients/torch.vgpu "$python" -c 'import torch
torch.zeros(8, 8, device="cuda") @ torch.zeros(8, 8, device="cuda")
print("PyTorch", torch.__version__, "on", torch.cuda.get_device_name())'
