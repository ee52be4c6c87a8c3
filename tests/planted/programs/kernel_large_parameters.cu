// A kernel receives a large structure. Its last word is the address of memory that is only reserved, which the kernel
// cannot use; or an address in the heap, where the download goes, and which the kernel may use.
// variants: never, read, heap
#include "planted.h"

#include <sys/mman.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Table {
    unsigned long long words[400];
};

__global__ void twice(int *values, Table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] *= 2;
}
PORTABLE_KERNEL(twice);

void program()
{
    void *reserved = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        std::abort();
    int *host = pageable_integers(count);
    Table table = {};
    for (unsigned long long &word : table.words)
        word = static_cast<unsigned long long>(&word - table.words) << 32 | 12345;
    table.words[399] = reinterpret_cast<unsigned long long>(variant("heap") ? host : reserved);
    int *device = device_integers(count);
    fill(device, count, 5);
    LAUNCH(twice, dim3(count / 128), dim3(128), 0, 0, device, table);
    DOWNLOAD(copy, host, device, bytes); // sync: never unnecessary, read required, heap required (undecidable)
    if (variant("read"))
        expect("downloaded", sum(host, count), 10 * count);
}
