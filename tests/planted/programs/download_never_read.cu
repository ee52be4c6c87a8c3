// A download that nobody reads needs no wait, but the next one does, which is read; or both are read.
// variants: second, both
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *one = pageable_integers(count);
    int *two = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD(first, one, device, bytes); // sync: second unnecessary, both required
    if (variant("both"))
        expect("one", sum(one, count), 7 * count);
    fill(device, count, 8);
    DOWNLOAD(last, two, device, bytes); // sync: required
    expect("two", sum(two, count), 8 * count);
}
