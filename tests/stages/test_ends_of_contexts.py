"""Which functions stage 3 hooks because they destroy the events that time a context's work."""

from __future__ import annotations

from ffm.driver.catalogue import Kind, load_catalogue
from ffm.stages.memory import ENDS_OF_CONTEXTS, ends_of_contexts


def test_every_version_of_each_is_in_the_catalogue() -> None:
    names = ends_of_contexts()
    found = [load_catalogue()[name] for name in names]
    assert {function.base for function in found} == ENDS_OF_CONTEXTS
    assert {function.kind for function in found} == {Kind.CONTEXT}
    assert {"cuCtxDestroy", "cuCtxDestroy_v2", "cuDevicePrimaryCtxReset_v2", "cuGreenCtxDestroy"} <= set(names)
    assert "cuCtxCreate_v2" not in names
