// A second thread downloads into a variable of the first one's stack, and waits; the first reads it. Or into the heap,
// where nobody reads.
// variants: stack, heap
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int on_stack[count] = {};
    int *on_heap = pageable_integers(count);
    int *host = variant("stack") ? on_stack : on_heap;
    std::thread second([&] {
        fill(device, count, 7);
        DOWNLOAD(copy, host, device, bytes); // sync: stack required, heap unnecessary
    });
    second.join();
    if (variant("stack"))
        expect("sum", sum(host, count), 7 * count);
}
