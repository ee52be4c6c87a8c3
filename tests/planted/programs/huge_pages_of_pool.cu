// As huge_pages, of the system's pool of huge pages; where that is empty the region has ordinary pages.
// variants: inside, beside
// like: huge_pages
#include "planted.h"

constexpr size_t huge = 2 << 20;
constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *region = mmap(nullptr, huge, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (region == MAP_FAILED)
        region = mmap(nullptr, huge, PROT_READ | PROT_WRITE, flags, -1, 0);
    std::memset(region, 1, huge);
    int *host = static_cast<int *>(region) + 1000;
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: inside required, beside unnecessary
    const int *read = variant("inside") ? host : host + count;
    expect("sum", sum(read, count), (variant("inside") ? 7LL : 0x01010101LL) * count);
}
