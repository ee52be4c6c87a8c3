// fread fills the source of an upload in flight, or other memory.
// variants: source, other
// like: read_into_source
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(count, 9);
    int *result = pageable_integers(count);
    int file = memfd_create("file", 0);
    expect("written", pwrite(file, other, bytes, 0), bytes);
    FILE *stream = fdopen(file, "r");
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    expect("items", std::fread(variant("source") ? source : other, sizeof(int), count, stream), count);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
