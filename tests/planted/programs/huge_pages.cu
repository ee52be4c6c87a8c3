// A download arrives inside a region of transparent huge pages; its bytes are read, or others of the region.
// variants: inside, beside
#include "planted.h"

constexpr size_t huge = 2 << 20;
constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *region = mmap(nullptr, 4 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *aligned = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(region) + huge - 1) / huge * huge);
    madvise(aligned, 2 * huge, MADV_HUGEPAGE);
    std::memset(aligned, 1, 2 * huge);
    int *host = reinterpret_cast<int *>(aligned + huge / 2);
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: inside required, beside unnecessary
    const int *read = variant("inside") ? host : host + 64 * 1024;
    expect("sum", sum(read, count), (variant("inside") ? 7LL : 0x01010101LL) * count);
}
