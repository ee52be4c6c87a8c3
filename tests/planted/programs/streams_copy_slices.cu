// One stream uploads half of an allocation, and another one downloads the other half, sets it or copies it on: the wait
// in between orders nothing. Or what they use overlaps, or rows of it do, or the second one runs a kernel, of which it
// is not known how far it goes.
// variants: downloads, sets, copies, overlaps, rows, kernel
#include "planted.h"

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int), row = 64;

/* What the second stream does with one half, from where to `used`. */
void use(int *used, int *from, cudaStream_t second)
{
    if (variant("sets"))
        check(cudaMemsetAsync(from, 1, bytes, second));
    else if (variant("rows"))
        check(cudaMemcpy2DAsync(used, row, from, 2 * row, row, bytes / row, cudaMemcpyDeviceToDevice, second));
    else if (variant("kernel"))
        add_slowly(used, from, count, second);
    else
        check(cudaMemcpyAsync(used, from, bytes, cudaMemcpyDeviceToDevice, second));
}

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *both = device_integers(2 * count), *slow = device_integers(count), *used = device_integers(count);
    int *given = pinned_integers(count, 5), *back = pinned_integers(count), *shown = pinned_integers(count);
    fill(both, 2 * count, 6, second);
    fill(both, 2 * count, 7, second);            /* later than the first stream's one fill */
    WAIT(filled, cudaStreamSynchronize(second)); // sync: required
    fill(slow, count, 1, first);
    // transfer: downloads, sets, copies, overlaps, rows, kernel needed
    UPLOAD_ASYNC(both, given, bytes, first);
    // sync: downloads, sets, copies unnecessary, overlaps, rows required, kernel required (undecidable)
    WAIT(between, cudaStreamSynchronize(first));
    int *from = variant("rows") ? both : both + (variant("overlaps") ? count / 2 : count);
    if (!variant("downloads"))
        use(used, from, second);
    DOWNLOAD_ASYNC(back, variant("downloads") || variant("sets") ? from : used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("used", back[9],
           variant("sets")        ? 0x01010101
           : variant("kernel")    ? 8
           : variant("downloads") ? 7
           : variant("copies")    ? 7
                                  : 5);
    DOWNLOAD_ASYNC(shown, both, bytes, first);
    WAIT(after, cudaStreamSynchronize(first)); // sync: required
    expect("uploaded", shown[9], 5);
}
