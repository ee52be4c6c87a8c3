"""The clock that samples the program's threads: a timer, or an event of the kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ROOT / "ffm" / "instrument" / "native"

PROGRAM = """
#include "sample_clock.c"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static ffm_sample_clock clock_of_thread;
static volatile uint64_t told, strange;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    const uint64_t nanoseconds = ffm_sample_clock_told(&clock_of_thread, info);
    if (nanoseconds == 0)
        strange++;
    told += nanoseconds;
}

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(FFM_SAMPLE_SIGNAL, &action, NULL);
    const int before = dup(0);
    close(before);
    if (!ffm_sample_clock_start(&clock_of_thread, gettid()))
        return 2;
    const int after = dup(0);
    volatile double work = 1;
    const double end = processor_s() + 0.4;
    while (processor_s() < end)
        for (int i = 0; i < 1000000; i++)
            work = work * 1.0000001;
    struct timespec pause = {.tv_nsec = 100000000};
    const int slept = nanosleep(&pause, NULL);
    kill(getpid(), FFM_SAMPLE_SIGNAL);
    ffm_sample_clock_stop(&clock_of_thread);
    const uint64_t counted = told;
    const double last = processor_s() + 0.05;
    while (processor_s() < last)
        work = work * 1.0000001;
    printf("%d %d %d %d %.3f\\n", slept, before == after, (int)strange, told == counted, (double)counted * 1e-9);
    return 0;
}
"""


OLD_KERNEL = """
#include <sys/utsname.h>
static int old_kernel(struct utsname *told) { return uname(told), snprintf(told->release, 9, "5.10.0"), 0; }
#define uname old_kernel
"""
WITHOUT_TIMERS = "#include <sys/syscall.h>\n#undef SYS_timer_create\n#define SYS_timer_create 9999\n"
WITHOUT_EVENTS = "#include <sys/syscall.h>\n#undef SYS_perf_event_open\n#define SYS_perf_event_open 9999\n"


@pytest.fixture(params=["", WITHOUT_TIMERS, OLD_KERNEL, OLD_KERNEL + WITHOUT_EVENTS])
def done(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """What the program printed, with each clock that it can have."""
    source = tmp_path / "clock.c"
    source.write_text("#include <stdio.h>\n" + request.param + PROGRAM)
    program = tmp_path / "clock"
    folders = [f"-I{LAYERS / layer}" for layer in ("base", "sampling")]
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", *folders, source, "-o", program], check=True
    )
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def test_a_thread_is_told_of_its_processor_time_and_of_nothing_else(done: list[str]) -> None:
    """No system call is interrupted, no file appears in the program, a signal of the program is told apart, and a clock
    that was stopped is silent.
    """
    interrupted, no_file, strange, silent, counted = done
    assert (interrupted, no_file, strange, silent) == ("0", "1", "1", "1")
    assert 0.2 < float(counted) < 0.5
