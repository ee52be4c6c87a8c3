# Sourced by the build scripts, which set `folder`: creates an environment there for one client of the driver. Sets
# root, libraries (of the virtual GPU), python and pip.
cd "$(dirname "$0")/../.."
root=$PWD
libraries=$("$root/.venv/bin/python" -c 'from ffm.vgpu.paths import library_folder; print(library_folder())') || {
    echo "the virtual GPU is not built: run make setup" >&2
    exit 1
}
export LIBRARY_PATH="$libraries" # where the linker looks for libcudart
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -x "$folder/env/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder/env"
python=$folder/env/bin/python
pip="$python -m pip --quiet --disable-pip-version-check"
