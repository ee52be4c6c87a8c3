/* What the virtual GPU is: sizes, bandwidths, latencies, durations of kernels and of the driver's own calls.
 *
 * Read once, by cuInit, from the file that VGPU_CONFIGURATION names, or else from `<executable>.vgpu` if that exists;
 * otherwise the defaults below hold. A line is `key = value`; `#` starts a comment. For the keys, see `README.md`.
 */
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "clock.h"

namespace vgpu
{

/* A kernel's modelled duration. */
struct KernelDuration {
    double fixed_microseconds;
    double nanoseconds_per_thread;

    Nanoseconds of(double threads) const;
};

/* What becomes of kernels that are not host functions. */
enum class DeviceCode {
    run,         /* those of PTX compute; others are refused */
    run_or_pass, /* those of PTX compute; others take their time and change nothing */
    pass,        /* they take their time and change nothing */
    refuse,      /* they cannot be had */
};

/* How long kernels last that really compute, on this machine. */
enum class DeviceTime {
    model,    /* as configured, or as long as this machine's processors take, if that is longer */
    measured, /* as long as these take */
};

struct Configuration {
    std::string device_name = "Virtual H200";
    int devices = 1;
    DeviceCode device_code = DeviceCode::run;
    DeviceTime device_time = DeviceTime::model;
    std::string llvm;                  /* the path of libllvmlite.so; empty: beside ffm */
    std::string cache;                 /* a folder for compiled kernels, `none`, or empty: the user's cache folder */
    double time_limit = 300;           /* seconds for one kernel on this machine; 0: none */
    double device_memory = 140.0;      /* GiB */
    double multiprocessors = 132;      /* each runs up to 2048 threads at a time */
    double pageable_memory_access = 1; /* whether the device says so; 0 or 1 */
    double host_to_device_pinned = 55; /* GB/s */
    double device_to_host_pinned = 55; /* GB/s */
    double host_to_device_staged = 12; /* GB/s, from pageable memory */
    double device_to_host_staged = 12; /* GB/s, to pageable memory */
    double device_to_device = 2000;    /* GB/s */
    double peer = 50;                  /* GB/s, from device to device with peer access */
    double set = 3500;                 /* GB/s, cuMemset */
    double copy_latency = 1.5;         /* microseconds for each copy or set, on the GPU */
    double staging_size = 16;          /* MiB of staging buffers for pageable copies */
    double staging_chunk = 2;          /* MiB in one staging buffer */

    /* Microseconds; medians of traces of an RTX 3090 and an A100 under Nsight Systems. */
    double start_latency = 1.5; /* from the return of a call until an idle device starts what it enqueued */
    double start_gap = 0.8;     /* between two kernels in a queue */
    double wait_latency = 1.5;  /* from the end of the work until a call returns that waits for it */

    /* Microseconds of CPU time that the driver's calls take, in addition to waiting. */
    double call_launch = 4;
    double call_copy = 2.5;
    double call_read_back = 7; /* a copy to the host that waits */
    double call_set = 2.0;
    double call_synchronize = 1.0;
    double call_event = 0.6;
    double pinned_offset = 0; /* bytes of other data on the pages of pinned memory, before and behind each block */
    double context_waits = 0; /* how often making the primary context waits for the GPU, without need */
    double event_time = 0;    /* of the GPU, from one event to the next */
    double call_allocate = 25;
    double call_free = 25;
    double call_allocate_host = 250;
    double call_free_host = 150;
    double call_register_host = 60;
    double call_allocate_pool = 1.2;
    double call_free_pool = 0.8;
    double call_create_context = 1000;
    double call_compile = 20'000;
    double call_load_kernel = 0; /* if it is not 0, a kernel is loaded by its first launch, which waits for the GPU */

    double log_refused = 0; /* whether requests for missing features are reported on standard error; 0 or 1 */

    KernelDuration default_kernel = {2.5, 0.004};
    std::map<std::string, KernelDuration> kernels;

    KernelDuration kernel(const std::string &name) const;
};

/* Whether kernels of PTX compute. */
inline bool runs_portable_code(const Configuration &configuration)
{
    return configuration.device_code == DeviceCode::run || configuration.device_code == DeviceCode::run_or_pass;
}

/* Whether kernels that cannot run take their time and change nothing. */
inline bool passes_other_code(const Configuration &configuration)
{
    return configuration.device_code == DeviceCode::pass || configuration.device_code == DeviceCode::run_or_pass;
}

/* Reads the configuration; false if it cannot be used, with `error` naming file, line and cause. */
bool load_configuration(std::string &error);

/* The configuration in force; the defaults until load_configuration has succeeded. */
const Configuration &configuration();

/* Whole nanoseconds; more than a century is one. */
constexpr Nanoseconds nanoseconds(double value)
{
    return static_cast<Nanoseconds>(std::min(value, 3.2e18));
}

constexpr Nanoseconds microseconds(double value)
{
    return nanoseconds(value * 1e3);
}

/* Time for `bytes` at `bandwidth` GB/s (10^9 bytes per second). */
constexpr Nanoseconds transfer_time(double bytes, double bandwidth)
{
    return nanoseconds(bytes / bandwidth);
}

} // namespace vgpu
