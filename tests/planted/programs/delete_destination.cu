// The memory of a vector in which a download arrives is freed when the vector goes out of scope; or it stays.
// variants: gone, stays
// like: free_destination
#include "planted.h"

#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    auto *host = new std::vector<int>(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host->data(), device, bytes); // sync: gone required, stays unnecessary
    if (variant("gone"))
        delete host;
    std::vector<int> next(count, 1);
    settle();
    expect("sum", sum(next.data(), count), count);
}
