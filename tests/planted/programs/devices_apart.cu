// A wait for devices before work of another one, which uses what they did or has no memory in common with them: it
// copies their memory, uploads what they brought to the host, or its kernel reads the host's memory or theirs.
// variants: alone, four, elsewhere, copied, uploaded, mapped, peer
#include "planted.h"

constexpr int count = 4096, most = 3;
constexpr size_t bytes = count * sizeof(int);

static int *produce(int device, int *between)
{
    check(cudaSetDevice(device));
    int *memory = device_integers(count);
    cudaStream_t producer = independent_stream();
    fill(variant("mapped") ? between : memory, count, 3, producer);
    if (variant("uploaded") || variant("elsewhere"))
        DOWNLOAD_ASYNC(between, memory, bytes, producer);
    return memory;
}

static void consume(int *second, int device, int *first, int *between, int *other, cudaStream_t consumer)
{
    if (variant("copied"))
        check(cudaMemcpyPeerAsync(second, device, first, 0, bytes, consumer));
    else if (variant("uploaded"))
        // transfer: uploaded needed or copy, alone, four, elsewhere, copied, mapped, peer absent
        UPLOAD_ASYNC(second, between, bytes, consumer);
    else if (variant("elsewhere"))
        // transfer: elsewhere needed or copy, alone, four, uploaded, copied, mapped, peer absent
        UPLOAD_ASYNC(second, other, bytes, consumer);
    else if (variant("mapped") || variant("peer"))
        add_slowly(second, variant("peer") ? first : between, count, consumer);
    else
        fill(second, count, 3, consumer);
}

void program()
{
    const int producers = variant("four") ? most : 1;
    int *between = pinned_integers(count), *other = pinned_integers(count, 3), *host = pinned_integers(count);
    check(cudaSetDevice(producers));
    if (variant("peer"))
        check(cudaDeviceEnablePeerAccess(0, 0));
    int *second = device_integers(count);
    cudaStream_t consumer = independent_stream();
    int *first = nullptr;
    for (int device = 0; device < producers; ++device) {
        first = produce(device, between);
        // sync: alone, four, elsewhere unnecessary, copied, uploaded, mapped, peer required
        WAIT(of_first, cudaDeviceSynchronize());
    }
    check(cudaSetDevice(producers));
    consume(second, producers, first, between, other, consumer);
    DOWNLOAD_ASYNC(host, second, bytes, consumer);
    WAIT(of_second, cudaStreamSynchronize(consumer)); // sync: required
    expect("second", sum(host, count), (variant("mapped") || variant("peer") ? 4 : 3) * count);
}
