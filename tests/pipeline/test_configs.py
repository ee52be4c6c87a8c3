"""The files of settings in configs/ name programs that exist, and settings that the workflow knows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from ffm.vgpu.paths import sample
from ffm.workflow.settings import NAMES
from tests.conftest import ROOT

FILES = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_workflow_knows_all_settings(path: Path) -> None:
    settings: dict[str, Any] = yaml.safe_load(path.read_text())
    assert set(settings) <= set(NAMES)
    assert isinstance(settings["timeout"], int)
    assert ("app" in settings) != ("sample" in settings)
    if "sample" in settings:
        assert settings["sample"] == path.stem
        assert sample(settings["sample"]).exists()
    else:
        assert shlex.split(settings["app"])


def test_every_sample_has_settings() -> None:
    samples = {path.name.removesuffix(".truth.toml") for path in (ROOT / "ffm/vgpu/samples").glob("*.truth.toml")}
    assert {path.stem for path in FILES} == samples | {"program"}
