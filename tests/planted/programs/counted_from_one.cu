// Arrays that count from one: kernels get the address before the first element. Another stream downloads what one
// wrote; the CPU reads what the other wrote.
// variants: adjacent, apart
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

__global__ void fill_from_one(int *data, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i <= count)
        data[i] = value;
}
PORTABLE_KERNEL(fill_from_one);

static int *managed_integers()
{
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, bytes));
    return static_cast<int *>(memory);
}

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    const int size = variant("adjacent") ? count : count + 1; /* allocations begin at multiples of 256 bytes */
    int *slow = device_integers(1), *before = device_integers(size), *device = device_integers(count);
    int *host = pinned_integers(count), *shared = managed_integers();
    UPLOAD_ASYNC(before, host, bytes, first);
    for (int turn = 1; turn < 4; turn++) {
        fill(slow, 1, 1, first);
        LAUNCH(fill_from_one, dim3(count / 128), dim3(128), 0, first, device - 1, turn);
        WAIT(ordered, cudaStreamSynchronize(first)); // sync: required
        DOWNLOAD_ASYNC(host, device, bytes, second);
        WAIT(downloaded, cudaStreamSynchronize(second)); // sync: required
        expect("downloaded", host[0], turn);
    }
    fill(slow, 1, 1, first);
    LAUNCH(fill_from_one, dim3(count / 128), dim3(128), 0, first, shared - 1, 7);
    WAIT(shown, cudaStreamSynchronize(first)); // sync: required
    expect("shared", shared[0], 7);
}
