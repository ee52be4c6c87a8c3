// An array whose rows count from one: kernels find the address of the row before the first one, which is in no memory,
// in a table. Another stream downloads what they wrote; or another array.
// variants: same, apart
#include "planted.h"

constexpr int width = 1024, rows = 4, count = width * rows;
constexpr size_t bytes = count * sizeof(int);

__global__ void fill_rows_of(int *const *table, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        table[0][width + i] = value;
}
PORTABLE_KERNEL(fill_rows_of);

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *slow = device_integers(1), *gone = device_integers(count), *device = device_integers(count);
    int *gone_too = device_integers(count), *other = device_integers(count), *host = pinned_integers(count);
    int **table = nullptr, **before = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&table), sizeof *table));
    check(cudaMallocHost(reinterpret_cast<void **>(&before), sizeof *before));
    *before = (variant("apart") ? other : device) - width;
    check(cudaFree(gone));     // sync: unnecessary
    check(cudaFree(gone_too)); // sync: unnecessary
    UPLOAD_ASYNC(table, before, sizeof *table, first);
    for (int turn = 1; turn < 3; turn++) {
        fill(slow, 1, 1, first);
        LAUNCH(fill_rows_of, dim3(count / threads_of_block), dim3(threads_of_block), 0, first, table, turn);
        WAIT(ordered, cudaStreamSynchronize(first)); // sync: same required, apart unnecessary
        if (variant("apart"))
            fill(device, count, turn, second);
        DOWNLOAD_ASYNC(host, device, bytes, second);
        WAIT(downloaded, cudaStreamSynchronize(second)); // sync: required
        expect("downloaded", host[0], turn);
    }
}
