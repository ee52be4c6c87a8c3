// Two buffers take turns: one stream sends, a second computes, a third brings back, ordered by events. The CPU fills a
// buffer again after it has waited for its upload two turns ago; or it never fills one again.
// variants: filled, kept
#include "planted.h"

constexpr int count = 1 << 14, turns = 6;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t sends = independent_stream(), computes = independent_stream(), returns = independent_stream();
    int *source[2], *sent[2], *made[2], *busy = device_integers(1), *result = pinned_integers(turns * count);
    cudaEvent_t uploaded[2], computed[2], fetched[2];
    for (int side = 0; side < 2; ++side) {
        source[side] = pinned_integers(count, 10 * side);
        sent[side] = device_integers(count);
        made[side] = device_integers(count);
        for (cudaEvent_t *event : {&uploaded[side], &computed[side], &fetched[side]})
            check(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    long long total = 0, expected = 0;
    for (int turn = 0; turn < turns; ++turn) {
        const int side = turn % 2;
        if (turn >= 2) {
            WAIT(sent_before, cudaEventSynchronize(uploaded[side])); // sync: filled required, kept unnecessary
            check(cudaStreamWaitEvent(sends, computed[side], 0));
            check(cudaStreamWaitEvent(computes, fetched[side], 0));
        }
        for (int place = 0; place < count && variant("filled"); ++place)
            source[side][place] = 10 * turn;
        fill(busy, 1, 0, sends);
        // transfer: filled needed, kept no-op and needed
        UPLOAD_ASYNC(sent[side], source[side], bytes, sends);
        check(cudaEventRecord(uploaded[side], sends));
        check(cudaStreamWaitEvent(computes, uploaded[side], 0));
        add_slowly(made[side], sent[side], count, computes);
        check(cudaEventRecord(computed[side], computes));
        check(cudaStreamWaitEvent(returns, computed[side], 0));
        DOWNLOAD_ASYNC(result + turn * count, made[side], bytes, returns);
        check(cudaEventRecord(fetched[side], returns));
        expected += 10 * (variant("filled") ? turn : side) + 1;
    }
    WAIT(all, cudaStreamSynchronize(returns)); // sync: required
    for (int turn = 0; turn < turns; ++turn)
        total += result[(turn + 1) * count - 1];
    expect("total", total, expected);
}
