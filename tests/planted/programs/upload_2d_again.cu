// A matrix with gaps between its rows is sent twice; or another matrix is sent.
// variants: same, other
#include "planted.h"

constexpr int width = 256, height = 64, pitch = 320;

void program()
{
    int *device = device_integers(width * height);
    int *source = pinned_integers(pitch * height, 5);
    int *other = pinned_integers(pitch * height, 6);
    int *result = pinned_integers(width * height);
    size_t row = width * sizeof(int), from = pitch * sizeof(int);
    cudaMemcpyKind kind = cudaMemcpyHostToDevice;
    const int *second = variant("same") ? source : other;
    check(cudaMemcpy2DAsync(device, row, source, from, row, height, kind)); // transfer: needed (first)
    source[width] = 77;                                                     // in a gap: it is not sent
    // transfer: same no-op (of first), other needed
    check(cudaMemcpy2DAsync(device, row, second, from, row, height, kind));
    add_slowly(device, device, width * height);
    DOWNLOAD_ASYNC(result, device, width * height * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, width * height), (variant("same") ? 6 : 7) * width * height);
}
