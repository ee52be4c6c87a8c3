"""Which processes work on the blocks of the analysis: a pool on this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

import functools
import importlib.util
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ffm.errors import FfmError
from ffm.results.spread import Spread

POOL_VISITS = 200_000_000
"""A pool is started if blocks visit more rows than this together: it takes seconds to start, and to load the kernels
in each process, and a core visits some tens of millions a second.
"""

ANSWER_S = 20
"""How long a scheduler may take to answer, and its first worker to come."""


@contextmanager
def spread_over(scheduler: str | None, folder: Path) -> Iterator[Spread]:
    """Give the analysis processes for its blocks: the workers of a Dask scheduler at an address or, without one, a pool
    with a process for each processor, which is started only if that pays. They end with the context.

    Raises:
        FfmError: Dask's `distributed` is not installed, no scheduler answers at the address, or it has no worker.
    """
    with ExitStack() as stack:
        if scheduler is not None:
            executor = stack.enter_context(_dask(scheduler))
            yield Spread(lambda: executor, folder)
            return

        @functools.cache
        def start() -> Executor:
            # Not forked: the analysis has threads of its own.
            pool = ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn"))
            return stack.enter_context(pool)

        yield Spread(start, folder, POOL_VISITS)


def require_scheduler(address: str) -> None:
    """Make sure that a Dask scheduler with a worker answers at an address, before anything is measured for it.

    Raises:
        FfmError: Dask's `distributed` is not installed, no scheduler answers, or it has no worker.
    """
    with _dask(address):
        pass


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    if importlib.util.find_spec("distributed") is None:
        raise FfmError(
            "--scheduler needs Dask's library `distributed`: install it with `pip install 'ffm[distributed]'`, here "
            "and where the workers run."
        )
    from distributed import Client
    from distributed.comm.addressing import get_address_host

    try:
        get_address_host(address)  # a client tries again and again even where no scheduler can be
        client = Client(address, timeout=ANSWER_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise FfmError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}). Start one with `dask scheduler` and "
            "workers with `dask worker ADDRESS`, or leave out --scheduler."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError as error:  # without one, the analysis would wait for its blocks forever
            raise FfmError(
                f"the Dask scheduler at {address} has no workers: start some with `dask worker {address}`, or leave "
                "out --scheduler."
            ) from error
        yield client.get_executor()
