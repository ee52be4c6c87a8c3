// As host_timer, with the older gettimeofday.
// variants: timed, untimed
// like: host_timer
#include "planted.h"

#include <sys/time.h>

void program()
{
    int *device = device_integers(1);
    timeval start = {}, end = {};
    if (variant("timed"))
        gettimeofday(&start, nullptr);
    fill(device, 1, 7);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: timed required, untimed unnecessary
    if (variant("timed")) {
        gettimeofday(&end, nullptr);
        expect("2 milliseconds", (end.tv_sec - start.tv_sec) * 1'000'000 + end.tv_usec - start.tv_usec > 2000, 1);
    }
}
