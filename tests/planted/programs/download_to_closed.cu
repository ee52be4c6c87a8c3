// Downloads whose destination is closed since the one before, which nobody read; or which lies on the page of others
// that nobody has read yet. Only the last one of each four is read, or all of them after the last.
// variants: last, all
#include "planted.h"

constexpr int count = 100, turns = 6, places = 4;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = static_cast<int *>(std::aligned_alloc(4096, 4096));
    for (int turn = 1; turn <= turns; turn++) {
        for (int place = 0; place < places - 1; place++) {
            fill(device, count, turn + place);
            // sync: last unnecessary, all conditionally unnecessary (keep used)
            DOWNLOAD(vain, host + (variant("all") ? place * count : 0), device, bytes);
        }
        fill(device, count, turn + 7);
        DOWNLOAD(used, host + (variant("all") ? (places - 1) * count : 0), device, bytes); // sync: required
        long long expected = count * (turn + 7LL), total = sum(host, count);
        if (variant("all")) {
            expected = count * (4LL * turn + 10);
            total = sum(host, places * count);
        }
        expect("total", total, expected);
    }
    std::free(host);
}
