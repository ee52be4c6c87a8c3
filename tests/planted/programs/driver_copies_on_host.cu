// cudaMemcpy between two places of the host reads the download; or it reads other memory. It waits for its own stream,
// which is not that of the download.
// variants: downloaded, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int *copied = pageable_integers(count);
    fill(device, count, 7, stream);
    DOWNLOAD_ASYNC(host, device, bytes, stream);
    WAIT(last, cudaStreamSynchronize(stream)); // sync: downloaded required, other unnecessary
    const void *from = variant("downloaded") ? host : other;
    check(cudaMemcpy(copied, from, bytes, cudaMemcpyHostToHost)); // sync: unnecessary
    expect("sum", sum(copied, count), (variant("downloaded") ? 7 : 3) * count);
}
