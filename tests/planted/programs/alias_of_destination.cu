// The program has mapped the same file twice: a download arrives in one mapping and is read through the other. Nothing
// shows whether the other is used, so the wait counts as needed even if it is not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int file = memfd_create("shared", 0);
    expect("grown", ftruncate(file, bytes), 0);
    void *host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: read required, never required (undecidable)
    if (variant("read"))
        expect("sum", sum(static_cast<int *>(alias), count), 7 * count);
}
