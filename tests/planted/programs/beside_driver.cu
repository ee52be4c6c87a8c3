// Small results lie in the program's heap, which it uses before and after the driver does, until all are there.
// variants: read, never
#include "planted.h"

constexpr int results = 200;

void program()
{
    static int *host[results];
    for (int number = 0; number < results / 2; number++)
        host[number] = pageable_integers(1);
    int *device = device_integers(1), *source = pinned_integers(results);
    for (int number = results / 2; number < results; number++)
        host[number] = pageable_integers(1);
    for (int number = 0; number < results - 1; number++) {
        source[number] = number;
        UPLOAD_ASYNC(device, source + number, sizeof(int));
        // sync: unnecessary or unnecessary and required (undecidable) or conditionally unnecessary (keep last)
        DOWNLOAD(each, host[number], device, sizeof(int));
    }
    fill(device, 1, 7);
    // sync: read required, never unnecessary
    DOWNLOAD(last, host[results - 1], device, sizeof(int));
    if (variant("read")) {
        expect("first", *host[0], 0);
        expect("last", *host[results - 1], 7);
    }
}
