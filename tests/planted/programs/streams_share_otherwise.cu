// Later work of a second stream uses what a first one makes, but its next work does not: a copy, a set, rows or a part
// of host memory that is downloaded, a graph, managed memory; behind an event that was recorded too early, or waited
// for too early. Or ranges of host memory only touch, or the event comes in time, or the default stream keeps the
// order.
// variants: copies, sets, rows, overlaps, graph, managed, old, early, touches, event, legacy
#include "planted.h"

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int), row = 64;

cudaStream_t stream_of_variant()
{
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, variant("legacy") ? cudaStreamDefault : cudaStreamNonBlocking));
    return stream;
}

cudaEvent_t new_event()
{
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

/* What the first stream does, and which of it the second one is ordered behind. */
void make(int *made, int *host, int *flag, cudaStream_t first, cudaStream_t second)
{
    cudaEvent_t event = new_event();
    fill(made, count, 7, first);
    if (variant("old") || variant("early"))
        check(cudaEventRecord(event, first));
    if (variant("early"))
        check(cudaStreamWaitEvent(second, event, 0));
    fill(made, count, 8, first);
    if (variant("event") || variant("early"))
        check(cudaEventRecord(event, first));
    if (variant("event") || variant("old"))
        check(cudaStreamWaitEvent(second, event, 0));
    if (variant("legacy"))
        check(cudaMemsetAsync(flag, 1, row, nullptr));
    if (variant("rows") || variant("overlaps") || variant("touches"))
        DOWNLOAD_ASYNC(host, made, bytes, first);
}

/* How the second stream uses it. */
void use(int *used, int *made, int *host, cudaGraphExec_t graph, cudaStream_t second)
{
    if (variant("copies")) {
        check(cudaMemcpyAsync(used, made, bytes, cudaMemcpyDeviceToDevice, second));
    } else if (variant("sets")) {
        check(cudaMemsetAsync(made, 1, bytes, second));
    } else if (variant("rows")) {
        // transfer: rows copy, copies, sets, overlaps, graph, managed, old, early, touches, event, legacy absent
        check(cudaMemcpy2DAsync(used, row, host, row, row, bytes / row, cudaMemcpyHostToDevice, second));
    } else if (variant("overlaps") || variant("touches")) {
        UPLOAD_ASYNC(used, variant("touches") ? host + count : host + count / 2, bytes, second);
    } else if (variant("graph")) {
        check(cudaGraphLaunch(graph, second));
    } else {
        add_slowly(used, made, count, second);
    }
}

void program()
{
    cudaStream_t first = stream_of_variant(), second = stream_of_variant(), other = independent_stream();
    int *made = device_integers(count), *used = device_integers(count), *source = device_integers(count);
    int *own = device_integers(count), *flag = device_integers(count), *back = pinned_integers(count);
    int *host = pinned_integers(2 * count, 3);
    if (variant("managed"))
        check(cudaMallocManaged(reinterpret_cast<void **>(&made), bytes));
    cudaGraphExec_t graph =
        captured(other, [&] { check(cudaMemcpyAsync(used, made, bytes, cudaMemcpyDeviceToDevice, other)); });
    make(made, host, flag, first, second);
    // sync: copies, sets, rows, overlaps, graph, managed, old, early required, touches, event, legacy unnecessary
    WAIT(between, cudaStreamSynchronize(first));
    add_slowly(own, source, count, second);
    use(used, made, host, graph, second);
    cudaEvent_t event = new_event();
    check(cudaEventRecord(event, second));
    check(cudaStreamWaitEvent(first, event, 0));
    DOWNLOAD_ASYNC(back, variant("sets") ? made : used, bytes, first);
    WAIT(last, cudaStreamSynchronize(first)); // sync: required
    const bool adds = variant("managed") || variant("old") || variant("early") || variant("event") || variant("legacy");
    expect("used", back[9], adds ? 9 : variant("sets") ? 0x01010101 : variant("touches") ? 3 : 8);
}
