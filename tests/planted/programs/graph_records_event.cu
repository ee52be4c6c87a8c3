// A captured graph records an event each time it runs; the CPU waits for that, and reads what was copied or does not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    cudaEvent_t copied = nullptr;
    check(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    cudaGraphExec_t graph = captured(stream, [&] {
        fill(device, count, 7, stream);
        DOWNLOAD_ASYNC(host, device, bytes, stream);
        check(cudaEventRecordWithFlags(copied, stream, cudaEventRecordExternal));
    });
    check(cudaGraphLaunch(graph, stream));
    WAIT(last, cudaEventSynchronize(copied)); // sync: read required, never required (undecidable)
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
