// A kernel writes registered memory that is a shared mapping; the CPU reads it through the mapping or not at all.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(cudaHostRegister(memory, bytes, cudaHostRegisterMapped));
    fill(static_cast<int *>(memory), count, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(static_cast<int *>(memory), count), 7 * count);
}
