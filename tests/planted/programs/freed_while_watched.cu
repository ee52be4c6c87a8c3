// Large memory is returned to the system while it is watched, and other data comes to the same place: the program
// must go on undisturbed. Or it is kept.
// variants: freed, kept
#include "planted.h"

constexpr int count = 1 << 20;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: freed required, kept unnecessary
    if (variant("freed"))
        std::free(host);
    int *next = pageable_integers(count, 1);
    settle();
    expect("sum", sum(next, count), count);
}
