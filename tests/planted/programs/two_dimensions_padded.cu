// A download of rows leaves the padding between them alone; a three-dimensional one leaves the rest of each slice. The
// CPU reads a row, or only what no copy writes.
// variants: row, padding, slice, rest
// like: download_2d
#include "planted.h"

constexpr int width = 200, pitch = 1024, rows = 64, slices = 4;

void program()
{
    int *device = device_integers(pitch * rows * slices);
    int *host = pinned_integers(pitch * rows * slices, 3);
    fill(device, pitch * rows * slices, 7);
    if (variant("slice") || variant("rest")) {
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = {device, pitch * sizeof(int), width, rows};
        copy.dstPtr = {host, pitch * sizeof(int), width, rows};
        copy.extent = {width * sizeof(int), rows / 2, slices};
        copy.kind = cudaMemcpyDeviceToHost;
        check(cudaMemcpy3DAsync(&copy));
    } else {
        check(cudaMemcpy2DAsync(host, pitch * sizeof(int), device, pitch * sizeof(int), width * sizeof(int), rows,
                                cudaMemcpyDeviceToHost));
    }
    // sync: row, slice required, padding, rest unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("row"))
        expect("row", sum(host + 5 * pitch, width), 7 * width);
    else if (variant("padding"))
        expect("padding", sum(host + 5 * pitch + width, pitch - width), 3 * (pitch - width));
    else if (variant("slice"))
        expect("slice", sum(host + 3 * rows * pitch + 9 * pitch, width), 7 * width);
    else
        expect("rest", sum(host + (3 * rows + rows / 2) * pitch, pitch * rows / 2), 3 * pitch * rows / 2);
    settle();
}
