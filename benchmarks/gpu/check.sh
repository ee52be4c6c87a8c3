#!/bin/sh
# Checks ffm on this machine's GPU, in less than nine minutes and without a network.
#
#   benchmarks/gpu/check.sh OUTPUT_FOLDER [--virtual] [--seconds N] [--only STEP,...]
#
# Needs an NVIDIA GPU with its driver, nvcc, gcc and Python 3.12; --virtual runs the same steps on the virtual GPU.
# Everything else is in the folder PACK (default build/gpu-pack), made by pack.sh; without it, the packages of PYTHON
# (default python3) must suffice. Prints what failed and continues. Writes OUTPUT_FOLDER/check.json and check.txt after
# each line that it prints.
set -eu
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
output=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
root=$PWD
pack=${PACK:-build/gpu-pack}
python=${PYTHON:-python3}

# The unpacked wheels and native parts take precedence over the machine's own packages.
if [ -d "$pack/wheels" ] && "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))'; then
    site=$root/build/gpu-site
    mkdir -p "$site"
    for wheel in "$pack"/wheels/*.whl; do
        "$python" -m zipfile -e "$wheel" "$site" || echo "check.sh: $wheel cannot be unpacked" >&2
    done
    PYTHONPATH=$root:$site${PYTHONPATH:+:$PYTHONPATH}
    cp -R "$pack/native/." .
else
    PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
fi

if [ -f "$pack/commit" ] && ! git rev-parse HEAD >/dev/null 2>&1; then
    set -- "$@" --commit "$(cat "$pack/commit")"
fi
PYTHONPATH=$root/benchmarks:$PYTHONPATH
PYTHONUNBUFFERED=1
export PYTHONPATH PYTHONUNBUFFERED
exec "$python" benchmarks/gpu/check.py "$output" "$@"
