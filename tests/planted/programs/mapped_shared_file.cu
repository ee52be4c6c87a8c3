// A kernel writes registered memory that is a shared mapping; the CPU reads it through the mapping, through a second
// one of the same memory, or not at all.
// variants: read, second, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *other = memory;
    check(cudaHostRegister(memory, bytes, cudaHostRegisterMapped));
    fill(static_cast<int *>(memory), count, 7);
    if (variant("second")) /* a size of 0 leaves the first one (mremap(2)) */
        other = mremap(memory, 0, bytes, MREMAP_MAYMOVE);
    WAIT(last, cudaDeviceSynchronize()); // sync: read, second required, never unnecessary
    if (!variant("never"))
        expect("sum", sum(static_cast<int *>(other), count), 7 * count);
}
