/* A launch: what is run, and what its blocks share. */
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "../translation/unit.h"
#include "block.h"
#include "foundation/cuda_api.h"
#include "memory/memory.h"
#include "ptx/launch_shape.h"

namespace vgpu::ptx
{

/* A kernel that can be run. */
struct Code {
    using Entry = void (*)(Block *, Thread *);
    /* Lets `lanes` of a warp go on at a place; `threads` and `frame` are the warp's. */
    using Regions = void (*)(Block *, Thread *threads, WarpRecord *, char *frame, std::uint32_t point,
                             std::uint32_t lanes);

    std::string name;
    Entry entry = nullptr;
    Regions regions = nullptr;     /* instead of `entry` */
    std::vector<WaitPoint> points; /* of regions */
    Schedule schedule = Schedule::loop;
    std::size_t shared_size = 0; /* bytes of static shared variables */
    std::size_t local_size = 0;
    std::size_t frame_size = 0; /* bytes that a thread of a coroutine, or a warp of regions, keeps while it waits */
    std::uint32_t maximum_threads = 0;             /* of a block (.maxntid, .reqntid) */
    std::uint32_t required_threads[3] = {0, 0, 0}; /* .reqntid; 0: any */

    /* From one thread's frame to the next one's: an odd number of cache lines, so that the same word of all frames lies
     * in different lines of the cache. */
    std::size_t frame_stride() const
    {
        return ((frame_size + 63) / 64 | 1) * 64;
    }
};

/* The size in whole pieces of 64 KiB. */
std::size_t rounded_stack(std::size_t size);

/* Bytes of a stack that the kernel's threads run on. */
std::size_t stack_size(const Code &code, const LaunchShape &shape);

/* What a launch hands to the kernel. */
struct Arguments {
    const std::uint64_t *variables; /* addresses of the module's, in the order that code knows them by */
    const char *parameters;
    std::size_t size; /* bytes of them */
    CUdevice device;
};

/* Why a kernel ended early. The numbers are known to translated code. */
enum class Fault : int {
    none = 0,
    address = 1,
    misaligned = 2,
    trap = 3,
    call = 4,
    stack = 5,
    assertion = 6,
    deadlock = 7,
    time = 8,
};

/* What all blocks of a launch share. */
class Launch
{
  public:
    Launch(const Code &code, const LaunchShape &shape, const Arguments &arguments);

    const Code &code;
    const LaunchShape shape;
    const Arguments arguments;
    const DeviceMemory::Map memory; /* as it was when the launch began; slower lookups find what came later */
    std::atomic<std::uint64_t> next_block{0};
    const std::uint64_t block_count;
    volatile std::int32_t stop = 0;
    std::uint32_t id;
    std::vector<std::uint64_t> workspace; /* of a cooperative grid, zero at first */

    /* The first fault ends the launch; `detail` is told on standard error with the kernel's name. */
    void fail(Fault fault, const std::string &detail);

    /* Its threads print. */
    void print(const std::string &text);

    /* CUDA's error for the fault. */
    CUresult result() const;
    const std::string &printed() const;

  private:
    std::mutex mutex_;
    Fault fault_ = Fault::none;
    std::string printed_;
};

} // namespace vgpu::ptx
