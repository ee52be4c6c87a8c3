"""The compiler for programs of others: their own Makefiles call it, and get code for the virtual GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ARCHITECTURE = "sm_90"
FLAGS = (f"-arch={ARCHITECTURE}", "-O3", "-lineinfo", "-Xcompiler", "-g", "-cudart", "shared")
"""What every call of the compiler gets. `-arch=sm_90` embeds PTX as well."""

_WRAPPER = """#!/bin/sh
# {name}: calls nvcc for one architecture, whatever the Makefile says.
skip=
for word; do
  shift
  case $skip$word in
    skip*) skip=; continue;;
    -arch|--gpu-architecture|-gencode|--generate-code|-code|--gpu-code|-cudart|--cudart) skip=skip; continue;;
    -arch=*|--gpu-architecture=*|-gencode=*|--generate-code=*|-code=*|--gpu-code=*|-cudart=*|--cudart=*) continue;;
  esac
  set -- "$@" "$word"
done
exec {nvcc} {flags} "$@"
"""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A folder with the wrapper `nvcc`, and the toolkit's folder of libraries."""

    wrapper: Path
    libraries: Path


def prepare(folder: Path) -> Toolchain:
    """Write the wrapper into the folder.

    Raises:
        FileNotFoundError: nvcc is not on the path, or does not say where its toolkit is.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise FileNotFoundError("nvcc is not on the path: install CUDA's compiler")
    plan = subprocess.run([nvcc, "--dryrun", "x.cu"], capture_output=True, text=True, check=False).stderr
    top = re.search(r"^#\$ TOP=(.+)$", plan, re.MULTILINE)
    if top is None:
        raise FileNotFoundError(f"`{nvcc} --dryrun x.cu` does not name the toolkit's folder")
    wrapper = folder / "nvcc"
    folder.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(name=wrapper.name, nvcc=nvcc, flags=" ".join(FLAGS)))
    wrapper.chmod(0o755)
    return Toolchain(wrapper, Path(top[1]).resolve() / "lib64")
