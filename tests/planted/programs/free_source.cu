// free() of registered memory from which an upload still reads: its next owner's data would be sent. Or it is kept.
// variants: freed, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pageable_integers(count, 5);
    int *result = pageable_integers(count);
    check(cudaHostRegister(source, bytes, cudaHostRegisterDefault));
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaDeviceSynchronize()); // sync: freed required, kept unnecessary
    if (variant("freed"))
        std::free(source);
    expect("next", sum(pageable_integers(count, 1), count), count);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
