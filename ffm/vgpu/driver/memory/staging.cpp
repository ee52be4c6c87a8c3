#include "staging.h"

#include <deque>
#include <mutex>
#include <vector>

#include "contexts/wait.h"
#include "foundation/configuration.h"

namespace vgpu
{

namespace
{

struct Staging {
    std::mutex mutex;
    std::size_t in_use = 0;
    std::deque<std::weak_ptr<Operation>> users; /* oldest first */
    std::vector<char *> unused;                 /* of staging_chunk() bytes */
};

Staging &staging()
{
    static Staging *instance = new Staging;
    return *instance;
}

/* Smaller copies get a buffer of their own size: the real driver sends their bytes along with its commands. */
constexpr std::size_t small_until = 64 * 1024;

std::size_t mebibytes(double value)
{
    return static_cast<std::size_t>(value * (1 << 20));
}

} // namespace

std::size_t staging_chunk()
{
    return mebibytes(configuration().staging_chunk);
}

StagingBuffer staging_buffer(std::size_t bytes)
{
    Staging &buffers = staging();
    bool whole = bytes > small_until;
    std::size_t size = whole ? staging_chunk() : bytes;
    std::unique_lock<std::mutex> lock(buffers.mutex);
    while (buffers.in_use > 0 && buffers.in_use + size > mebibytes(configuration().staging_size) &&
           !buffers.users.empty()) {
        OperationReference oldest = buffers.users.front().lock();
        buffers.users.pop_front();
        if (!oldest)
            continue;
        lock.unlock();
        wait_for_gpu({oldest});
        oldest.reset();
        lock.lock();
    }
    buffers.in_use += size;
    char *memory;
    if (whole && !buffers.unused.empty()) {
        memory = buffers.unused.back();
        buffers.unused.pop_back();
    } else {
        memory = new char[size];
    }
    return StagingBuffer(memory, [size, whole](char *buffer) {
        std::lock_guard<std::mutex> release(staging().mutex);
        staging().in_use -= size;
        if (whole)
            staging().unused.push_back(buffer);
        else
            delete[] buffer;
    });
}

void staging_buffer_used_by(const OperationReference &operation)
{
    Staging &buffers = staging();
    std::lock_guard<std::mutex> lock(buffers.mutex);
    while (!buffers.users.empty() && buffers.users.front().expired())
        buffers.users.pop_front();
    buffers.users.push_back(operation);
}

} // namespace vgpu
