// A download arrives in a global variable, which is read or not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;

static int host[count];

void program()
{
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, sizeof host); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
