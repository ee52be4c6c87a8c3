// A download into a variable of the function itself, which is read; or a wait for a kernel alone next to such a
// variable.
// variants: read, kernel
#include "planted.h"

void program()
{
    int *device = device_integers(1);
    int answer = 0;
    fill(device, 1, 7);
    if (variant("read")) {
        DOWNLOAD(copy, &answer, device, sizeof answer); // sync: read required, kernel absent
        expect("answer", answer, 7);
    } else {
        WAIT(last, cudaDeviceSynchronize()); // sync: kernel unnecessary, read absent
        expect("answer", answer, 0);
    }
}
