// read(2) overwrites the source of an upload in flight, for the program; or it fills other memory.
// variants: source, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(count, 9);
    int *result = pageable_integers(count);
    int ends[2];
    if (pipe(ends) != 0)
        std::abort();
    expect("written", write(ends[1], other, bytes), bytes);
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    expect("bytes", read(ends[0], variant("source") ? source : other, bytes), bytes);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
