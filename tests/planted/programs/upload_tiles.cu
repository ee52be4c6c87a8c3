// Tiles of a buffer are sent to one place of the device in turn, twice. All of them hold the same, or each something
// else, or a single one is sent again and again.
// variants: equal, other, single
#include "planted.h"

constexpr int count = 16 * 1024, tiles = 4;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(tiles * count, 5);
    int *result = pinned_integers(2 * tiles * count);
    if (variant("other"))
        for (int index = 0; index < tiles * count; ++index)
            source[index] = index / count;
    for (int turn = 0; turn < 2 * tiles; ++turn) {
        int *tile = source + (variant("single") ? 0 : turn % tiles * count);
        // transfer: equal needed and no-op by equal bytes, other needed and repeat, single needed and no-op
        UPLOAD_ASYNC(device, tile, bytes);
        DOWNLOAD_ASYNC(result + turn * count, device, bytes);
    }
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, 2 * tiles * count), (variant("other") ? 12 : 40) * count);
}
