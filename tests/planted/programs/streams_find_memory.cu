// Later work of a second stream finds what a first one makes by an address that a kernel stored, or a copy on the
// device took along; its next work uses other memory.
// variants: stored, copied
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

__global__ void keep_row(int **table, int *row)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        table[0] = row;
}
PORTABLE_KERNEL(keep_row);

__global__ void next_of_kept(int *destination, int **table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        destination[i] = table[0][i] + 1;
}
PORTABLE_KERNEL(next_of_kept);

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *made = device_integers(count), *used = device_integers(count), *source = device_integers(count);
    int *own = device_integers(count), *host = pinned_integers(count), **table = nullptr, **copied = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&table), sizeof *table));
    check(cudaMalloc(reinterpret_cast<void **>(&copied), sizeof *copied));
    LAUNCH(keep_row, dim3(1), dim3(1), 0, first, table, made);
    check(cudaMemcpyAsync(copied, table, sizeof *table, cudaMemcpyDeviceToDevice, first));
    fill(made, count, 7, first);
    fill(made, count, 8, first);
    WAIT(between, cudaStreamSynchronize(first)); // sync: required
    fill(source, count, 4, second);
    add_slowly(own, source, count, second);
    LAUNCH(next_of_kept, dim3(count / threads_of_block), dim3(threads_of_block), 0, second, used,
           variant("copied") ? copied : table);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("used", host[9], 9);
}
