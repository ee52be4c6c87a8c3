"""FFmpeg as built by Debian, on the virtual GPU: it uploads each frame of a film and downloads it again.

FFmpeg asynchronously copies the planes of a frame one by one to pageable memory, and then waits for its stream. A copy
to pageable memory itself waits. FFmpeg hands the frame to another thread through a lock, and locks order nothing for
ffm: that thread may rely on any of the waits. All come after the first one for each plane, so no other is needed.
"""

from __future__ import annotations

import shutil

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import library_folder
from tests.processes import run_to_end

FRAMES = 25
COMMAND = [
    *("ffmpeg", "-hide_banner", "-loglevel", "error"),
    *("-f", "lavfi", "-i", f"testsrc2=size=640x480:rate={FRAMES}:duration=1"),
    *("-init_hw_device", "cuda=gpu", "-filter_hw_device", "gpu"),
    *("-vf", "format=nv12,hwupload,hwdownload,format=nv12"),
    *("-f", "md5", "-"),
]
WITHOUT_GPU = [*COMMAND[: COMMAND.index("-init_hw_device")], "-vf", "format=nv12", "-f", "md5", "-"]


def _has_cuda() -> bool:
    if shutil.which("ffmpeg") is None:
        return False
    return "cuda" in run_to_end(["ffmpeg", "-hide_banner", "-hwaccels"], seconds=30).stdout.split()


pytestmark = pytest.mark.skipif(not _has_cuda(), reason="no FFmpeg with CUDA is installed: make clients")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ResultsFolder:
    """Results of all measuring stages."""
    folder = ResultsFolder(tmp_path_factory.mktemp("ffmpeg") / "results")
    folder.root.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_LIBRARY_PATH", str(library_folder()))
        request = Request(COMMAND, folder, 120.0)
        for stage in MEASURING_STAGES.values():
            stage(request)
    return folder


@pytest.fixture(scope="module")
def analysis(folder: ResultsFolder) -> Analysis:
    return run_analysis(folder)


def sites_of(analysis: Analysis, call: str) -> list[Site]:
    return [site for site in analysis.sites if site.call == call]


def test_the_film_is_the_same_in_every_stage(folder: ResultsFolder) -> None:
    bare = run_to_end(WITHOUT_GPU, seconds=60).stdout
    assert bare.startswith("MD5=")
    assert [(folder.root / f"{stage}.log").read_text() for stage in MEASURING_STAGES] == [bare] * len(MEASURING_STAGES)


def test_the_runs_match(analysis: Analysis) -> None:
    assert analysis.matching is not None
    assert analysis.matching.unmatched == []


def test_waits_for_a_frame_beyond_the_first_for_each_plane_are_hardly_ever_required(analysis: Analysis) -> None:
    """Where the waiting thread itself looks at a plane first, its last wait counts."""
    (waited,) = (site for site in sites_of(analysis, "cuStreamSynchronize") if site.count == FRAMES)
    (downloads,) = (site for site in sites_of(analysis, "cuMemcpy2DAsync_v2") if site.synchronization)
    assert downloads.count == 2 * FRAMES
    required = [
        sum(verdict.occurrences for verdict in site.synchronization if verdict.kind in ("required", "misplaced"))
        for site in (waited, downloads)
    ]
    assert required[1] + 2 * required[0] >= 2 * FRAMES, "each plane needs a wait"
    assert required[0] < FRAMES / 2
