"""Stage 2 (dissertation 4.2): every operation of the program on the GPU, with its stack and its times."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.evidence.compiling import compiled_modules
from ffm.evidence.marked_iterations import marked_iterations
from ffm.evidence.named_work import context_devices, launched_kernels
from ffm.evidence.operations import EVENTS, operation_columns
from ffm.evidence.stack_table import StackTable
from ffm.evidence.threads.lock_waits import recorded_lock_waits
from ffm.evidence.threads.processor_times import recorded_processor_times
from ffm.evidence.threads.thread_lives import recorded_lives
from ffm.evidence.transfers.host_memory import host_memory_columns
from ffm.evidence.transfers.requested_blocks import requested_blocks
from ffm.instrument.modes import Mode
from ffm.instrument.pinning import least_pinning_s
from ffm.instrument.probing.device import compute_capability
from ffm.instrument.probing.latency import DriverTimes, wait_latency
from ffm.results.columnar.tables import write_table
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import Baseline, Tracing, WaitLatency
from ffm.results.folder.identity import read_latest
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.sampling import sampled_work

TRACED_KINDS = (
    Kind.SYNCHRONIZATION,
    Kind.TRANSFER,
    Kind.SET,
    Kind.ALLOCATION,
    Kind.FREE,
    Kind.LAUNCH,
    Kind.HOST_FUNCTION,
    Kind.MIGRATION,
    Kind.MAPPING,
    Kind.SHARING,
    Kind.VIEW,
    Kind.RELEASE,
    Kind.QUERY,
    Kind.TIMING,
    Kind.ORDER,
    Kind.GRAPH,
    Kind.STREAM,
    Kind.EVENT,
    Kind.MODULE,
)
"""What is traced no matter what stage 1 saw: everything that enqueues, orders, waits for or frees GPU work."""

OBSERVED = Mode.NAMES | Mode.LIVES | Mode.SAMPLES
"""What is recorded besides driver calls, and costs little."""

NEWEST_CAPABILITY = 9999
"""A GPU newer than all: code that must be compiled even for it is PTX."""


def context_makers() -> list[str]:
    """Return the exported names of what makes contexts, which is hooked so that what waits in it is left out.

    `cuDevicePrimaryCtxRetain` waits 34 times for an H200, 1.9 ms of 120: for the context's own set-up, without which
    there is none.
    """
    return [function.name for function in load_catalogue().functions if function.makes_context]


def traced_functions(waited: Iterable[str] = ()) -> list[str]:
    """Return the exported names to hook: the kinds above, what makes contexts, and what was seen to wait."""
    catalogue = load_catalogue()
    names = {function.name: None for function in catalogue.of_kind(*TRACED_KINDS)}
    names.update(dict.fromkeys(context_makers()))
    names.update({name: None for name in waited if name in catalogue})
    return list(names)


def without_ties(mode: Mode, request: Request) -> Mode:
    """Return a mode without what replaces functions of the C library, if the program is to be left running: Frida takes
    back the memory through which these are replaced when it leaves.
    """
    return mode & ~(Mode.LIVES | Mode.HOST) if request.leave else mode


def run_tracing(request: Request) -> Tracing:
    """Run the program with all operations traced; write `tracing.json` and `tracing-events.arrow`.

    Raises:
        DocumentError: Stage 1 is missing.
        ProgramError: The program could not be measured, or failed.
    """
    baseline = read_latest(Baseline, request.folder, "baseline")
    measured = measure(
        "tracing",
        request,
        on=baseline.runs,
        functions=traced_functions(baseline.functions),
        # Blocks of memory are recorded once, and would outlast their uses with --last.
        mode=without_ties(OBSERVED | (Mode.HOST if request.last_s is None else Mode.NONE), request),
        ranges=True,
        portion=request.portion,
    )
    return record_tracing(measured, request)


def _capability(measured: Measurement, stacks: StackTable) -> int:
    """Query the driver's GPU, if the program contains device code that may have to be compiled."""
    driver = measured.run.driver
    holds_code = compiled_modules(measured.run, stacks.modules, NEWEST_CAPABILITY)
    return compute_capability(Path(driver.path)) if driver is not None and holds_code else 0


def _driver_times(measured: Measurement) -> DriverTimes:
    driver = measured.run.driver
    return DriverTimes(0, "the driver is unknown") if driver is None else wait_latency(Path(driver.path))


def _pinning_byte_ns() -> float | None:
    try:
        return least_pinning_s() * 1e9
    except OSError:
        return None


def record_tracing(measured: Measurement, request: Request) -> Tracing:
    """Store a traced run."""
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    host_memory = host_memory_columns(measured.recordings, stacks)
    cost = float(np.median(columns["probe"])) if len(columns["probe"]) else 0.0
    write_table({name: columns[name] for name in EVENTS.columns}, request.folder.table("tracing-events"))
    write_table(host_memory, request.folder.table("tracing-host-memory"))
    times = _driver_times(measured)
    document = Tracing(
        runs=measured.runs,
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        events=request.folder.table("tracing-events").name,
        host_memory=request.folder.table("tracing-host-memory").name,
        probe_cost_ns=cost,
        compute_capability=_capability(measured, stacks),
        wait_latency=WaitLatency(least=times.least, unknown=times.reason),
        pinning_call_ns=times.pinning_call,
        device_copy_byte_ns=times.copied_byte,
        pinning_byte_ns=_pinning_byte_ns(),
        marked=marked_iterations(measured.recordings, request.folder.recordings(measured.run.stage)),
        sampled=sampled_work(measured.recordings, columns),
        threads=recorded_lives(measured.recordings, columns),
        locks=None if request.leave else recorded_lock_waits(measured.recordings),
        processor_times=None if request.leave else recorded_processor_times(measured.recordings),
        devices=context_devices(measured.recordings),
        kernels=launched_kernels(measured.recordings, columns),
        requested=requested_blocks(measured.recordings, stacks.modules),
    )
    document = write_document(document, request.folder.document("tracing"), own=True)
    require_sound(measured.run, request)
    return document
