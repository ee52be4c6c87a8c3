// A synchronous download of a matrix into the heap: its last row is read, or the memory after it.
// variants: row, behind
// like: download_2d
#include "planted.h"

constexpr int width = 100, height = 7;

cudaError_t later(int *host, const int *device)
{
    for (int row = 0; row < height; ++row)
        check(download_later(host + 2 * row * width, device + row * width, width * sizeof(int)));
    return cudaSuccess;
}

void program()
{
    int *device = device_integers(width * height);
    int *host = pageable_integers(2 * width * height, 1);
    size_t row_bytes = width * sizeof(int);
    cudaMemcpyKind kind = cudaMemcpyDeviceToHost;
    fill(device, width * height, 7);
    // sync: row required, behind unnecessary
    WAIT_OR(copy, cudaMemcpy2D(host, 2 * row_bytes, device, row_bytes, row_bytes, height, kind), later(host, device));
    const int *last = host + 2 * width * (height - 1);
    expect("sum", sum(variant("row") ? last : last + width, width), (variant("row") ? 7 : 1) * width);
}
