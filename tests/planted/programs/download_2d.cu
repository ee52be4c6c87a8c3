// Rows of a matrix arrive with gaps between them: the CPU reads a row, or a gap.
// variants: row, gap
#include "planted.h"

constexpr int width = 256, height = 16, pitch = 512;

void program()
{
    int *device = device_integers(width * height);
    int *host = pinned_integers(pitch * height, 1);
    fill(device, width * height, 7);
    check(cudaMemcpy2DAsync(host, pitch * sizeof(int), device, width * sizeof(int), width * sizeof(int), height,
                            cudaMemcpyDeviceToHost));
    WAIT(last, cudaDeviceSynchronize()); // sync: row required, gap unnecessary
    const int *fifth = host + 5 * pitch;
    expect("sum", sum(variant("row") ? fifth : fifth + width, width), (variant("row") ? 7 : 1) * width);
}
