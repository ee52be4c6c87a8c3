// Frames go up and through kernels on one stream, and come back on another one, to two places in turns. Nobody uses
// what comes back, so that the order of the two streams does not matter, although no wait is for a download before the
// next one overwrites what it brought; or a wait is for each. Or the CPU uses each frame, or the last one, or it looks
// at where a frame arrives until it has, from one thread or another, and relies on no later wait; or the GPU uses each.
// variants: unused, awaited, shown, last, uploaded, mapped, managed, polled, thread
#include "planted.h"

#include <thread>

constexpr int count = 2048, turns = 8, patience = 300;
constexpr size_t bytes = count * sizeof(int);

/* The last integer of a frame, which comes with the others, once it is as expected or no longer can be. */
int arriving(const int *frame, int expected)
{
    const volatile int *last = frame + count - 1;
    for (int turn = 0; turn < patience && *last != expected; ++turn)
        usleep(1000);
    return *last;
}

int seen_by_thread(const int *frame, int expected)
{
    int found = 0;
    std::thread([&] { found = arriving(frame, expected); }).join();
    return found;
}

void program()
{
    cudaStream_t computes = independent_stream(), returns = independent_stream();
    int *sent[2], *made[2], *frame[2], *shown = device_integers(turns * count);
    int *sources = pinned_integers(turns * count), *back = pinned_integers(turns * count);
    cudaEvent_t computed;
    check(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming));
    for (int side = 0; side < 2; ++side) {
        sent[side] = device_integers(count);
        made[side] = device_integers(count);
        if (variant("managed"))
            check(cudaMallocManaged(reinterpret_cast<void **>(&frame[side]), bytes));
        else
            frame[side] = pinned_integers(count);
    }
    for (int place = 0; place < turns * count; ++place)
        sources[place] = 10 * (place / count + 1);
    fill(shown, turns * count, 4, returns);
    long long found = 0, expected = 0;
    for (int turn = 0; turn < turns; ++turn) {
        const int side = turn % 2, value = 10 * (turn + 1) + 1;
        UPLOAD_ASYNC(sent[side], sources + turn * count, bytes, computes); // transfer: needed
        fill(made[side], count, 5, computes);
        add_slowly(made[side], sent[side], count, computes);
        check(cudaEventRecord(computed, computes));
        if (turn < turns - 1) {
            // sync: unused, awaited, last unnecessary, shown, uploaded, mapped, managed, polled, thread required
            WAIT(between, cudaEventSynchronize(computed));
        } else {
            // sync: unused, awaited unnecessary, last, shown, uploaded, mapped, managed, polled, thread required
            WAIT(before_last, cudaEventSynchronize(computed));
        }
        DOWNLOAD_ASYNC(frame[side], made[side], bytes, returns); // transfer: needed
        if (variant("uploaded"))
            UPLOAD_ASYNC(shown + turn * count, frame[side], bytes, returns);
        else if (variant("mapped") || variant("managed"))
            add_slowly(shown + turn * count, frame[side], count, returns);
        if (variant("awaited") || variant("shown")) {
            // sync: awaited unnecessary, shown required, unused, last, uploaded, mapped, managed, polled, thread absent
            WAIT(returned, cudaStreamSynchronize(returns));
        }
        if (variant("shown"))
            found += frame[side][count - 1];
        else if (variant("polled"))
            found += arriving(frame[side], value);
        else if (variant("thread"))
            found += seen_by_thread(frame[side], value);
        if (variant("shown") || variant("polled") || variant("thread"))
            expected += value;
    }
    expect("frames", found, expected);
    // sync: last required, unused, awaited, shown, uploaded, mapped, managed, polled, thread unnecessary
    WAIT(last, cudaStreamSynchronize(returns));
    if (variant("last"))
        expect("last", frame[(turns - 1) % 2][count - 1], 10 * turns + 1);
    DOWNLOAD_ASYNC(back, shown, turns * bytes, returns); // transfer: needed
    WAIT(of_shown, cudaStreamSynchronize(returns));      // sync: required
    for (int turn = 0; turn < turns; ++turn) {
        const int made_then = 10 * (turn + 1) + 1;
        expect("shown", back[(turn + 1) * count - 1],
               variant("uploaded")                       ? made_then
               : variant("mapped") || variant("managed") ? made_then + 1
                                                         : 4);
    }
    fill(made[0], count, 6, computes);
    DOWNLOAD_ASYNC(sources, made[0], bytes, computes); // transfer: needed
    WAIT(end, cudaStreamSynchronize(computes));        // sync: required
    expect("made", sources[count - 1], 6);
}
