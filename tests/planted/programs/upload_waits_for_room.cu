// An asynchronous upload from pageable memory finds the driver's room for such bytes full of another stream's, so it
// waits until that stream goes on. Nothing on its own stream has ended then: the CPU looks at what is still being
// downloaded there, or does not, and reads it after a wait.
// variants: glances, waits_first
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);
constexpr size_t part = 68 << 10; // such an upload takes one of the driver's buffers, of which there are `buffers`
constexpr int buffers = 8;
constexpr int turns = 20; // a site whose bytes never repeat is not read back any more: then only the driver waits

constexpr cudaMemcpyKind up = cudaMemcpyHostToDevice;

void keep_busy(int *memory, int kernels, cudaStream_t stream)
{
    for (int kernel = 0; kernel < (planted::proving() ? kernels / 8 : kernels); ++kernel)
        fill(memory, count, 7, stream);
}

void program()
{
    cudaStream_t other = independent_stream();
    cudaStream_t stream = independent_stream();
    int *filled = device_integers(part / sizeof(int));
    int *sent = device_integers(count);
    int *made = device_integers(count);
    int *many = pageable_integers(part / sizeof(int));
    int *few = pageable_integers(count);
    int *locked = pinned_integers(count);
    int *host = pinned_integers(count);
    auto from_locked = [=] { return cudaMemcpyAsync(sent, locked, bytes, up, stream); };
    for (int turn = 0; turn <= turns; ++turn) {
        const bool last = turn == turns;
        few[0] = locked[0] = turn + 1;
        if (last) {
            usleep(100'000); // all buffers are free then, on a machine in use, too
            keep_busy(made, 24, stream);
            DOWNLOAD_ASYNC(host, made, bytes, stream);
            keep_busy(filled, 16, other);
        }
        for (int buffer = 0; buffer < (last ? buffers : 1); ++buffer) {
            many[0] = -turn - buffer - 1;
            UPLOAD_ASYNC(filled, many, last ? part : bytes, other);
        }
        WAIT_OR(upload, cudaMemcpyAsync(sent, few, bytes, up, stream), from_locked()); // sync: unnecessary
    }
    if (variant("glances"))
        static_cast<void>(*static_cast<volatile int *>(host));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: required
    expect("sum", sum(host, count), 7 * count);
}
