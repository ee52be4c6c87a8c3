// write(2) reads what a download brings, for the program; or it writes other memory.
// variants: destination, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int written[count];
    int ends[2];
    if (pipe(ends) != 0)
        std::abort();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    expect("bytes", write(ends[1], variant("destination") ? host : other, bytes), bytes);
    expect("read", read(ends[0], written, bytes), bytes);
    expect("sum", sum(written, count), (variant("destination") ? 7 : 3) * count);
}
