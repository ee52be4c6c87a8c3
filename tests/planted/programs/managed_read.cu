// A kernel writes managed memory; the CPU reads it or does not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;

void program()
{
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, count * sizeof(int), cudaMemAttachGlobal));
    fill(static_cast<int *>(memory), count, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(static_cast<int *>(memory), count), 7 * count);
}
