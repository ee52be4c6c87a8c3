// A thread waits for what it filled, and tells another one by a flag, whose work on a stream of its own follows. That
// uses other memory, or the same: given by its address, by an address in memory that was uploaded there or that a
// kernel left there, copied on the device, or through memory of the host.
// variants: elsewhere, same, table, stored, copied, brought
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

__global__ void store_address(int **table, int *memory)
{
    table[0] = memory;
}
PORTABLE_KERNEL(store_address);

__global__ void copy_through(int *destination, int *const *table, int length)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < length)
        destination[i] = table[0][i];
}
PORTABLE_KERNEL(copy_through);

/* The memory that `table` holds the address of. */
static void point_to(int **table, int *memory, cudaStream_t stream)
{
    if (variant("stored"))
        LAUNCH(store_address, dim3(1), dim3(1), 0, stream, table, memory);
    else
        // transfer: stored absent, elsewhere, same, table, copied, brought needed
        UPLOAD_ASYNC(table, &memory, sizeof memory, stream);
    check(cudaStreamSynchronize(stream)); // sync: required (undecidable) or unnecessary
}

static void consume(int *result, int *first, int **table, int *between, cudaStream_t stream)
{
    if (variant("same"))
        check(cudaMemcpyAsync(result, first, 0, cudaMemcpyDeviceToDevice, stream));
    if (variant("copied"))
        check(cudaMemcpyAsync(result, first, bytes, cudaMemcpyDeviceToDevice, stream));
    else if (variant("brought"))
        // transfer: brought needed or copy, elsewhere, same, table, stored, copied absent
        UPLOAD_ASYNC(result, between, bytes, stream);
    else if (variant("same"))
        add_slowly(result, first, count, stream);
    else
        LAUNCH(copy_through, dim3(count / threads_of_block), dim3(threads_of_block), 0, stream, result, table, count);
}

void program()
{
    int *first = device_integers(count), *second = device_integers(count), *result = device_integers(count);
    int *host = pinned_integers(count), *between = pinned_integers(count);
    int **table = reinterpret_cast<int **>(device_integers(2));
    cudaStream_t producing = independent_stream(), consuming = independent_stream();
    fill(second, count, 8, consuming);
    point_to(table, variant("elsewhere") ? second : first, consuming);
    std::atomic<bool> ready{false};
    std::thread consumer([&] {
        while (!ready.load(std::memory_order_acquire))
            std::this_thread::yield();
        consume(result, first, table, between, consuming);
        DOWNLOAD_ASYNC(host, result, bytes, consuming);
        WAIT(of_result, cudaStreamSynchronize(consuming)); // sync: required
    });
    fill(first, count, 7, producing);
    if (variant("brought"))
        DOWNLOAD_ASYNC(between, first, bytes, producing);
    // sync: elsewhere unnecessary, same, table, stored, copied, brought required
    WAIT(of_first, cudaStreamSynchronize(producing));
    ready.store(true, std::memory_order_release);
    consumer.join();
    expect("result", sum(host, count), (variant("elsewhere") || variant("same") ? 8 : 7) * count);
}
