// fwrite hands large blocks to write(2) as they are and copies small ones into its buffer; or it writes other memory.
// variants: large, small, other
// like: write_from_destination
#include "planted.h"

constexpr int count = 16 * 1024;

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int *written = pageable_integers(count);
    int part = variant("small") ? 8 : count;
    FILE *file = fdopen(memfd_create("written", 0), "w+");
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: large, small required, other unnecessary
    expect("items", std::fwrite(variant("other") ? other : host, sizeof(int), part, file), part);
    std::rewind(file);
    expect("read", std::fread(written, sizeof(int), part, file), part);
    expect("sum", sum(written, part), (variant("other") ? 3 : 7) * part);
}
