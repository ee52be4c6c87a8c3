"""Where the virtual GPU's libraries and samples are.

The build installs them into `lib` and `bin` of this package. An editable installation of the package has several
folders (`ffm.vgpu.__path__`), so each is searched.
"""

from pathlib import Path

import ffm.vgpu
from ffm.errors import FfmError


class NotBuiltError(FfmError):
    """A part of the virtual GPU has not been built."""

    help = "Run `make setup`."

    def __init__(self, name: str, folders: list[Path]) -> None:
        """Name the part and the folders that were searched."""
        searched = ", ".join(str(folder) for folder in folders)
        super().__init__(f"{name} of the virtual GPU is not built (looked in {searched}).")


class UnknownSampleError(FfmError):
    """There is no such sample."""

    def __init__(self, name: str, known: list[str]) -> None:
        """Name the sample, and those that there are, without their corrected twins."""
        samples = ", ".join(one for one in known if "_fixed" not in one)
        super().__init__(f"there is no sample {name}: the samples are {samples}.")


def library_folder() -> Path:
    """Return the folder that contains `libcuda.so.1`, `libcudart.so.13` and `libvblas.so`.

    Raises:
        NotBuiltError: No folder of the package contains the driver.
    """
    return _find(Path("lib") / "libcuda.so.1").parent


def sample(name: str) -> Path:
    """Return the executable of the sample `name`, such as `als` or `als_fixed`.

    Raises:
        UnknownSampleError: There is no such sample.
        NotBuiltError: No samples are built.
    """
    folders = [Path(folder) / "bin" for folder in ffm.vgpu.__path__]
    # Each sample lies beside its configuration, which others may use.
    files = (file for folder in folders if folder.is_dir() for file in folder.iterdir() if file.is_file())
    built = {file.name for file in files if not file.suffix}
    if built and name not in built:
        raise UnknownSampleError(name, sorted(built))
    return _find(Path("bin") / name)


def _find(relative: Path) -> Path:
    folders = [Path(folder) for folder in ffm.vgpu.__path__]
    for folder in folders:
        if (folder / relative).is_file():
            return folder / relative
    raise NotBuiltError(relative.name, [folder / relative.parent for folder in folders])
