// A captured graph allocates memory, fills it and copies it to pinned memory, which the CPU reads or never reads. Or it
// leaves the memory to the program, which uploads the same twice: the second time after it was freed and allocated
// anew.
// variants: read, never, anew
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static void allocated_anew(cudaStream_t stream, cudaGraphExec_t graph, int *inner)
{
    int *sent = pinned_integers(count, 5), *arrived = pinned_integers(count);
    UPLOAD_ASYNC(inner, sent, bytes, stream); // transfer: anew needed (sent), read, never absent
    check(cudaFreeAsync(inner, stream));
    check(cudaGraphLaunch(graph, stream));
    UPLOAD_ASYNC(inner, sent, bytes, stream);      // transfer: anew needed or repeat (of sent), read, never absent
    DOWNLOAD_ASYNC(arrived, inner, bytes, stream); // transfer: anew needed or copy, read, never absent
    WAIT(arrival, cudaStreamSynchronize(stream));  // sync: anew required, read, never absent
    expect("sum", sum(arrived, count), 5 * count);
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *host = pinned_integers(count), *inner = nullptr;
    cudaGraphExec_t graph = captured(stream, [&] {
        void *memory = nullptr;
        check(cudaMallocAsync(&memory, bytes, stream));
        inner = static_cast<int *>(memory);
        fill(inner, count, 7, stream);
        DOWNLOAD_ASYNC(host, inner, bytes, stream);
        if (!variant("anew"))
            check(cudaFreeAsync(memory, stream));
    });
    check(cudaGraphLaunch(graph, stream));
    if (variant("anew"))
        allocated_anew(stream, graph, inner);
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, never, anew unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
