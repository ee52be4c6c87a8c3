// A second stream downloads what a first one makes, and the first one makes something else then. Nobody uses what was
// downloaded, so that it does not matter what comes first; or the CPU or the GPU uses it, by an upload, or by a kernel
// that is given the host memory. Or it comes to where the first stream brought what nobody used, or will bring what is
// used. Or what it reads is freed then, as memory of a pool.
// variants: unread, read, uploads, mapped, over, under, pool
#include "planted.h"

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int);

/* Another way than the CPU's to use what the second stream brought. */
void use_on_device(int *used, int *host, cudaStream_t second)
{
    if (variant("uploads"))
        UPLOAD_ASYNC(used, host, bytes, second);
    else if (variant("mapped"))
        add_slowly(used, host, count, second);
}

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *made = device_integers(count), *used = device_integers(count), *own = device_integers(count);
    int *host = pinned_integers(count, 3), *back = pinned_integers(count), *pooled = nullptr;
    if (variant("pool"))
        check(cudaMallocAsync(reinterpret_cast<void **>(&pooled), bytes, first));
    int *source = variant("pool") ? pooled : made;
    for (int turn = 0; turn < (variant("under") ? 1 : 5); ++turn) // longer than the second stream, but for "under"
        fill(source, count, 7, first);
    fill(source, count, 8, first);
    if (variant("over"))
        DOWNLOAD_ASYNC(host, source, bytes, first);
    // sync: unread, under unnecessary, read, uploads, mapped, over required, pool required (undecidable)
    WAIT(between, cudaStreamSynchronize(first));
    for (int turn = 0; turn < (variant("under") ? 5 : 3); ++turn) // longer than the first stream does from here on
        fill(own, count, 4, second);
    DOWNLOAD_ASYNC(host, variant("over") ? own : source, bytes, second);
    use_on_device(used, host, second);
    // sync: unread unnecessary, read, uploads, mapped, over, under required, pool required (undecidable)
    WAIT(brought, cudaStreamSynchronize(second));
    if (variant("pool"))
        check(cudaFreeAsync(pooled, first));
    fill(variant("under") ? used : made, count, 20, first);
    DOWNLOAD_ASYNC(variant("under") ? host : back, variant("under") ? used : made, bytes, first);
    WAIT(last, cudaStreamSynchronize(first)); // sync: required
    expect("made", variant("under") ? host[9] : back[9], 20);
    if (variant("under"))
        settle();
    if (variant("read") || variant("over") || variant("under"))
        expect("host", host[9], variant("over") ? 4 : variant("under") ? 20 : 8);
    if (variant("uploads") || variant("mapped")) {
        DOWNLOAD_ASYNC(back, used, bytes, second);
        // sync: uploads, mapped required, unread, read, over, under, pool absent
        WAIT(after, cudaStreamSynchronize(second));
        expect("used", back[9], variant("mapped") ? 9 : 8);
    }
}
