#!/bin/sh
# Installs Numba's CUDA target, with the compilers that it needs, into a separate environment.
#
#   tests/clients/build_numba.sh [FOLDER]      default: build/numba
#
# Run by hand: it needs a package index and 400 MB. tests/clients/test_numba.py then runs, and count_numba.py counts
# which of Numba's own tests pass.
set -eu
folder=${1:-build/numba}
. "$(dirname "$0")/environment.sh"
$pip install 'numba-cuda[cu13]' numpy scipy filecheck ml_dtypes cffi psutil pytest
$pip uninstall --yes nvidia-nvjitlink # it links to machine code; without it the driver links, and gets PTX
"$python" -c 'import numba, numba_cuda; print("Numba", numba.__version__, "CUDA", numba_cuda.__version__)'
