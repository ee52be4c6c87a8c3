// Two streams read one source; the CPU writes it after waits for both, of which either alone is too few. Or not at all.
// variants: written, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *busy = device_integers(2);
    int *one = device_integers(count), *two = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    // The stream that is not waited for works longer than the other, so that it shows.
    for (int turn = planted::keeps("by_first") ? 3 : 0; turn < 4; ++turn)
        fill(busy, 1, 0, first);
    UPLOAD_ASYNC(one, source, bytes, first); // transfer: needed (first)
    for (int turn = planted::keeps("by_second") ? 3 : 0; turn < 4; ++turn)
        fill(busy + 1, 1, 0, second);
    UPLOAD_ASYNC(two, source, bytes, second);       // transfer: copy
    WAIT(by_first, cudaStreamSynchronize(first));   // sync: written required, kept unnecessary
    WAIT(by_second, cudaStreamSynchronize(second)); // sync: written required, kept unnecessary
    if (variant("kept"))
        return;
    for (int index = 0; index < count; ++index)
        source[index] = 100;
    cudaStream_t streams[2] = {first, second};
    int *sent[2] = {one, two};
    for (int index = 0; index < 2; ++index) {
        add_slowly(sent[index], sent[index], count, streams[index]);
        DOWNLOAD_ASYNC(result, sent[index], bytes, streams[index]);
        WAIT(last, cudaStreamSynchronize(streams[index])); // sync: written required, kept absent
        expect("sum", sum(result, count), 6 * count);
    }
}
