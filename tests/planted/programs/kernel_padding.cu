// A kernel receives a structure whose padding contains a stale address. If that points to memory that is only reserved,
// the kernel cannot use it, so the download is still watched. If it points to the heap, the kernel may use it.
// variants: never, read, heap
#include "planted.h"

#include <sys/mman.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Scale {
    unsigned low, high; // a float, and what lies behind it
};

__global__ void twice(int *values, Scale)
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
    void *rest = variant("heap") ? host : reserved;
    unsigned long long address = reinterpret_cast<unsigned long long>(rest);
    Scale scale = {static_cast<unsigned>(address), static_cast<unsigned>(address >> 32)};
    int *device = device_integers(count);
    fill(device, count, 5);
    LAUNCH(twice, dim3(count / 128), dim3(128), 0, 0, device, scale);
    DOWNLOAD(copy, host, device, bytes); // sync: never unnecessary, read required, heap required (undecidable)
    if (variant("read"))
        expect("downloaded", sum(host, count), 10 * count);
}
