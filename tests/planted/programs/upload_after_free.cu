// The buffer is freed and allocated again between two uploads of the same bytes; that they are still there is chance.
// Or it is kept.
// variants: freed, kept
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    if (variant("freed")) {
        FREE(free, device); // sync: freed unnecessary, kept absent
        if (planted::keeps("free"))
            device = device_integers(count);
    }
    UPLOAD_ASYNC(device, source, bytes); // transfer: freed repeat (of first), kept no-op (of first)
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
