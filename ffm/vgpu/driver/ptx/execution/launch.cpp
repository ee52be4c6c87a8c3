#include "launch.h"

#include <algorithm>
#include <cstdio>

namespace vgpu::ptx
{

namespace
{

constexpr std::size_t smallest_stack = std::size_t{256} << 10; /* bytes; leaves room for the driver's own functions */
constexpr std::size_t workspace_words = 64;

std::uint32_t next_id()
{
    static std::atomic<std::uint32_t> next{1};
    return next.fetch_add(1);
}

} // namespace

std::size_t rounded_stack(std::size_t size)
{
    constexpr std::size_t piece = 65536;
    return (size + piece - 1) / piece * piece;
}

/* A frame in x86-64 code is larger than on a GPU, but less than twice as large. */
std::size_t stack_size(const Code &code, const LaunchShape &shape)
{
    return rounded_stack(smallest_stack + 2 * std::max(code.local_size, shape.stack));
}

Launch::Launch(const Code &launched, const LaunchShape &given, const Arguments &handed)
    : code(launched), shape(given), arguments(handed), memory(DeviceMemory::map(handed.device)),
      block_count(std::uint64_t{given.grid[0]} * given.grid[1] * given.grid[2]), id(next_id()),
      workspace(workspace_words)
{
}

void Launch::fail(Fault fault, const std::string &detail)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (fault_ != Fault::none)
        return;
    fault_ = fault;
    if (fault == Fault::assertion)
        std::fprintf(stderr, "%s\n", detail.c_str());
    else
        std::fprintf(stderr, "vgpu: kernel %s: %s\n", code.name.c_str(), detail.c_str());
    stop = 1;
}

void Launch::print(const std::string &text)
{
    std::lock_guard<std::mutex> lock(mutex_);
    printed_ += text;
}

const std::string &Launch::printed() const
{
    return printed_;
}

CUresult Launch::result() const
{
    switch (fault_) {
    case Fault::none:
        return CUDA_SUCCESS;
    case Fault::address:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::misaligned:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::call:
        return CUDA_ERROR_INVALID_PC;
    case Fault::stack:
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case Fault::assertion:
        return CUDA_ERROR_ASSERT;
    case Fault::deadlock:
    case Fault::time:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

} // namespace vgpu::ptx
