// The CPU writes managed memory that a kernel still reads, or memory that no kernel knows.
// variants: input, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
    int *input = static_cast<int *>(memory);
    int *other = pageable_integers(count);
    int *device = device_integers(count);
    int *result = pageable_integers(count);
    for (int index = 0; index < count; ++index)
        input[index] = 4;
    add_slowly(device, input, count);
    WAIT(before, cudaDeviceSynchronize()); // sync: input required, other unnecessary
    int *written = variant("input") ? input : other;
    for (int index = 0; index < count; ++index)
        written[index] = 100;
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
