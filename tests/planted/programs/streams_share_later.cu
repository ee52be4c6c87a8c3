// Two streams share memory, but not the memory that the second one's next work uses. The wait in between orders what
// comes later: work of that stream, work of a third one behind an event, what a table leads to, a write over what is
// read. Or nothing, if an event does that, or if the streams share only memory of the host, for which other waits stay.
// variants: later, third, table, overwrites, event, apart
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

__global__ void next_of_row(int *destination, int *const *rows, int row)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        destination[i] = rows[row][i] + 1;
}
PORTABLE_KERNEL(next_of_row);

void order(cudaStream_t behind, cudaStream_t before)
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, before));
    check(cudaStreamWaitEvent(behind, event, 0));
}

/* What the second stream does after the wait; returns the stream that makes `used`. */
cudaStream_t go_on(int *used, int *made, int **table, cudaStream_t first, cudaStream_t second)
{
    if (variant("third")) {
        cudaStream_t third = independent_stream();
        order(third, second);
        add_slowly(used, made, count, third);
        return third;
    }
    if (variant("table"))
        LAUNCH(next_of_row, dim3(count / threads_of_block), dim3(threads_of_block), 0, second, used, table, 0);
    else if (variant("overwrites"))
        fill(made, count, 100, second);
    else if (!variant("apart"))
        add_slowly(used, made, count, second);
    return variant("overwrites") ? first : second;
}

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *made = device_integers(count), *used = device_integers(count), *slow = device_integers(count);
    int *own = device_integers(count), *source = device_integers(count), *host = pinned_integers(count);
    int **table = nullptr, **rows = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&table), sizeof *table));
    check(cudaMallocHost(reinterpret_cast<void **>(&rows), sizeof *rows));
    *rows = made;
    UPLOAD_ASYNC(table, rows, sizeof *table, first);
    fill(made, count, 7, first);
    if (!variant("overwrites"))
        fill(made, count, 8, first);
    if (variant("overwrites")) {
        fill(slow, count, 1, first);
        add_slowly(used, made, count, first);
    }
    if (variant("event"))
        order(second, first);
    // sync: later, third, table, overwrites required, event, apart unnecessary or conditionally unnecessary
    WAIT(between, cudaStreamSynchronize(first));
    if (!variant("overwrites"))
        fill(source, count, 4, second);
    add_slowly(own, source, count, second);
    cudaStream_t maker = go_on(used, made, table, first, second);
    DOWNLOAD_ASYNC(host, variant("apart") ? own : used, bytes, maker);
    WAIT(one, cudaStreamSynchronize(maker)); // sync: required
    expect("used", host[9], variant("apart") ? 5 : variant("overwrites") ? 8 : 9);
    DOWNLOAD_ASYNC(host, made, bytes, variant("overwrites") ? second : first);
    WAIT(other, cudaStreamSynchronize(variant("overwrites") ? second : first)); // sync: required
    expect("made", host[9], variant("overwrites") ? 100 : 8);
}
