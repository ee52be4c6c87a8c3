"""The workflow of a measurement as Snakemake reads it: its rules, profiles and files of settings."""

from pathlib import Path

_FOLDER = Path(__file__).parent

SNAKEFILE = str(_FOLDER / "Snakefile")
"""The rules of the five stages; a text, as Snakemake's `include` takes it."""

PROJECT = _FOLDER / "project.smk"
"""What includes them in a folder of the user's own."""

PROFILES = _FOLDER / "profiles"
"""A folder for each way to run them: `default` on this machine, `slurm` on a cluster."""

CONFIGS = _FOLDER / "configs"
"""Files of settings: one for each bundled sample, and `program.yaml`, a commented one to copy."""
