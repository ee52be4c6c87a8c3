// The same matrix goes to memory with another pitch: a copy on the device would do. Or other bytes go there.
// variants: same, other
#include "planted.h"

constexpr int width = 256, height = 64, pitch = 320;

void program()
{
    int *tight = device_integers(width * height);
    int *wide = device_integers(pitch * height);
    int *source = pinned_integers(width * height, 5);
    int *other = pinned_integers(width * height, 6);
    int *result = pinned_integers(width * height);
    size_t row = width * sizeof(int), to = pitch * sizeof(int);
    cudaMemcpyKind kind = cudaMemcpyHostToDevice;
    const int *second = variant("same") ? source : other;
    check(cudaMemcpy2DAsync(tight, row, source, row, row, height, kind)); // transfer: needed (first)
    // transfer: same copy (of first), other needed
    check(cudaMemcpy2DAsync(wide, to, second, row, row, height, kind));
    add_slowly(tight, wide, width);
    DOWNLOAD_ASYNC(result, tight, row);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, width), (variant("same") ? 6 : 7) * width);
}
