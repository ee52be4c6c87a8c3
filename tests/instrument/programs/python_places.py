"""Waits for the GPU from many places of a Python program, and reports where it was, for the test to compare.

Arguments: the driver, and a file for the answer: for each thread (by the kernel's number) and each of its waits, the
active functions, innermost first, as [qualified name, file, line].
"""

import contextlib
import ctypes
import json
import sys
import threading
from pathlib import Path

cuda = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
waits = {}
TURNS = 40  # enough for the interpreter to specialize its instructions


def note(frame):
    functions = []
    while frame is not None:
        functions.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    waits.setdefault(threading.get_native_id(), []).append(functions)


def check(status):
    if status != 0:
        raise RuntimeError(status)


def wait():
    note(sys._getframe()), check(cuda.cuCtxSynchronize())


def called_in_turn():
    def inner():
        wait()

    inner()


def numbers(count):
    for number in range(count):
        wait()
        yield number


def delegating(count):
    yield from numbers(count)


async def coroutine():
    wait()


class Buffer:
    def __init__(self):
        wait()

    @property
    def size(self):
        wait()
        return 1

    def __getitem__(self, index):
        wait()
        return index

    def __enter__(self):
        wait()
        return self

    def __exit__(self, *_):
        wait()

    def __del__(self):
        wait()


def drops_its_buffer():
    buffer = Buffer()
    return buffer.size


def by_callback(value):
    wait()
    return -value


def größe():
    wait()


def wait_计算():  # noqa: N802
    größe()


def wait_𠀀():  # noqa: N802
    wait_计算()


def two_on_one_line():
    wait(), wait()


def keywords(*arguments, **named):
    wait()


def deep(depth):
    if depth:
        deep(depth - 1)
    else:
        wait()


def made_at_run_time():
    """Create functions that are freed in each turn, so that others take their addresses."""
    for turn in range(6):
        space = {"wait": wait}
        exec(f"def made_{turn % 3}():\n" + "    pass\n" * turn + "    wait()\n", space)
        space[f"made_{turn % 3}"]()


def everything():
    for _ in range(TURNS):
        called_in_turn()
        for _number in numbers(2):
            pass
        list(delegating(2))
        with contextlib.suppress(StopIteration):
            coroutine().send(None)
        sorted([3, 1, 2], key=by_callback)
        drops_its_buffer()
        with Buffer() as buffer:
            buffer[0]
        del buffer
        [wait() for _ in range(2)]
        (lambda: wait())()
        two_on_one_line()
        keywords(*(1, 2), name=3)
        wait_𠀀()
    made_at_run_time()
    for depth in (20, 100, 300):
        deep(depth)


def in_a_thread():
    check(cuda.cuCtxSetCurrent(context))
    everything()


check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
everything()
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
Path(sys.argv[2]).write_text(json.dumps(waits))
