// A captured graph forks into two streams and joins; both branches download. The CPU reads one branch's result, or
// none; or the graph is launched twice before anybody looks, and the first wait is not needed.
// variants: read, never, twice, each
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream(), side = independent_stream();
    int *left = device_integers(count), *right = device_integers(count);
    int *left_host = pinned_integers(count), *right_host = pinned_integers(count);
    cudaEvent_t forked, joined;
    check(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    check(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    cudaGraphExec_t graph = captured(stream, [&] {
        check(cudaEventRecord(forked, stream));
        check(cudaStreamWaitEvent(side, forked, 0));
        fill(left, count, 7, stream);
        DOWNLOAD_ASYNC(left_host, left, bytes, stream);
        fill(right, count, 9, side);
        DOWNLOAD_ASYNC(right_host, right, bytes, side);
        check(cudaEventRecord(joined, side));
        check(cudaStreamWaitEvent(stream, joined, 0));
    });
    check(cudaGraphLaunch(graph, stream));
    if (variant("twice") || variant("each")) {
        // sync: read, never absent, twice unnecessary or conditionally unnecessary (keep last), each required
        WAIT(first, cudaStreamSynchronize(stream));
        if (variant("each")) {
            expect("left", sum(left_host, count), 7 * count);
            std::memset(left_host, 0, bytes);
        }
        check(cudaGraphLaunch(graph, stream));
    }
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read, twice, each required, never unnecessary
    if (variant("twice") || variant("each"))
        expect("left", sum(left_host, count), 7 * count);
    else if (variant("read"))
        expect("right", sum(right_host, count), 9 * count);
    settle();
}
