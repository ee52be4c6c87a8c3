// A block copy begins on the page long before what came and runs into it, or stops before.
// variants: into, before
#include "planted.h"

#include <vector>

constexpr int count = 64;
constexpr int ahead = 900;

void program()
{
    int *device = device_integers(count);
    int *page = pinned_integers(1024, 1);
    std::vector<int> copied(1024);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page + ahead, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: into required, before unnecessary
    int length = variant("into") ? ahead + count : ahead;
    std::memcpy(copied.data(), page, length * sizeof(int));
    expect("sum", sum(copied.data(), length), ahead + (variant("into") ? 7 * count : 0));
}
