// A thread has two streams of its own while the main thread has another one. The second one uses what the first one
// made, after other work; or the two share host memory only at the end. Or it uses what the main thread made on its
// stream before the thread began.
// variants: later, apart, handed
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static void on_two_streams(const int *given)
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *made = device_integers(count), *used = device_integers(count), *own = device_integers(count);
    int *source = device_integers(count), *host = pinned_integers(count);
    fill(made, count, 7, first);
    fill(made, count, 8, first);
    WAIT(between, cudaStreamSynchronize(first)); // sync: later required, apart, handed unnecessary
    fill(source, count, 4, second);
    add_slowly(own, source, count, second);
    add_slowly(used, variant("later") ? made : variant("handed") ? given : source, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(one, cudaStreamSynchronize(second)); // sync: required
    expect("used", host[9], variant("later") ? 9 : variant("handed") ? 21 : 5);
    DOWNLOAD_ASYNC(host, made, bytes, first);
    WAIT(other, cudaStreamSynchronize(first)); // sync: required
    expect("made", host[9], 8);
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *given = device_integers(count), *later = device_integers(count), *host = pinned_integers(count);
    for (int turn = 0; turn < 6; ++turn)
        fill(given, count, 15 + turn, stream);
    WAIT(before, cudaStreamSynchronize(stream)); // sync: handed required, later, apart unnecessary
    std::thread thread(on_two_streams, given);
    fill(later, count, 30, stream);
    DOWNLOAD_ASYNC(host, later, bytes, stream);
    WAIT(beside, cudaStreamSynchronize(stream)); // sync: required
    expect("later", host[9], 30);
    thread.join();
}
