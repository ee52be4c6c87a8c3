// mlock(2) makes the system visit all pages of a block, on one of which a download arrived: that is not a use of it.
// variants: read, never
#include "planted.h"

constexpr int page = 4096 / sizeof(int);
constexpr int count = 3 * page;

void program()
{
    int *device = device_integers(page);
    int *host = static_cast<int *>(
        mmap(nullptr, count * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    fill(device, page, 7);
    DOWNLOAD(copy, host + page, device, page * sizeof(int)); // sync: read required, never unnecessary
    expect("locked", mlock(host, count * sizeof(int)), 0);
    expect("unlocked", munlock(host, count * sizeof(int)), 0);
    if (variant("read"))
        expect("sum", sum(host + page, page), 7 * page);
}
