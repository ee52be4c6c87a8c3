#!/bin/sh
# Installs Numba's CUDA target, with the compilers that it needs, into an environment of its own.
#
#   tests/clients/build_numba.sh [FOLDER]      default: build/numba
#
# Run by hand: it needs a package index and 400 MB. tests/clients/test_numba.py then runs.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-build/numba}
mkdir -p "$folder"
[ -x "$folder/env/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/python" -m pip --quiet --disable-pip-version-check install 'numba-cuda[cu13]' numpy
"$folder/env/bin/python" -c 'import numba, numba_cuda; print("Numba", numba.__version__, "CUDA", numba_cuda.__version__)'
