/* What a thread uses of the GPU, and the tasks that it does with that. */
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime.h"

/* So many bytes as the virtual GPU is told to take long to set. */
static constexpr std::size_t bytes = 4096;

/* What the command line says: whether all use the legacy default stream, whether needless waits are left out, and how
 * many tasks there are. */
static bool legacy = false, fixed = false;
static int tasks = 0;

static std::atomic<long> total{0};

/* Reads no clock: a wait before that would count as one for timing. */
__attribute__((noinline, aligned(64))) static void work(int thousands)
{
    volatile int left = thousands * 1000;
    while (left > 0)
        left = left - 1;
}

/* A stream, memory of the device to set, and a byte of the host to fetch to. */
struct Lane {
    unsigned char *device = nullptr, *host = nullptr;
    cudaStream_t stream = nullptr;

    Lane()
    {
        if (!legacy)
            check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        check(cudaMalloc(reinterpret_cast<void **>(&device), bytes));
        check(cudaMallocHost(reinterpret_cast<void **>(&host), 1));
    }

    void set(int times) const
    {
        for (int number = 0; number < times; ++number)
            check(cudaMemsetAsync(device, 1, bytes, stream));
    }

    void wait() const
    {
        if (fixed)
            return;
        check(legacy ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream));
    }

    void fetch() const
    {
        check(cudaMemcpyAsync(host, device, 1, cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        total += *host;
    }

    /* A task with the wait that is not needed, and one without. */
    void task(int sets, int thousands) const
    {
        set(sets);
        wait();
        work(thousands);
        fetch();
    }
    void plain(int sets, int thousands) const
    {
        set(sets);
        work(thousands);
        fetch();
    }
};
