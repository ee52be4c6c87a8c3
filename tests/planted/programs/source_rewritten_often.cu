// A thread overwrites half of an upload's source often, after two waits that cover the upload. Another one runs
// meanwhile: it touches nothing; it reads the other half often, which is harmless; or it overwrites that half, relying
// on the first wait, at some time after the second.
// variants: spins, reads, writes
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024, rounds = 16; // more writes than are stepped over
constexpr int looks = 64;                // more reads than a page may be stepped on
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> handed{false}, written{false}, done{false}, over{false};
static int *shared;

static void other_thread()
{
    while (!handed)
        continue;
    if (variant("writes")) {
        while (!planted::proving() && !written) // it could come at once as well
            continue;
        for (int index = 0; index < count; ++index)
            shared[index] = 100;
    }
    for (int look = 0; variant("reads") && look < looks; ++look)
        expect("read", sum(shared, count), 5 * count);
    done = true;
    while (!over)
        continue;
}

static void overwrite(int *half)
{
    for (int number = 0; number < rounds; ++number)
        for (int index = 0; index < count; ++index)
            static_cast<volatile int *>(half)[index] = number;
}

void program()
{
    int *source = pinned_integers(2 * count, 5), *second = pinned_integers(count, 3);
    int *device = device_integers(3 * count), *result = pageable_integers(3 * count);
    shared = source;
    std::thread other(other_thread);
    fill(device, 3 * count, 0);
    UPLOAD_ASYNC(device, source, 2 * bytes);
    // sync: writes required, spins, reads conditionally unnecessary (keep both) or required (undecidable)
    WAIT(first, cudaStreamSynchronize(nullptr));
    handed = true;
    fill(device + 2 * count, count, 0);
    UPLOAD_ASYNC(device + 2 * count, second, bytes);
    WAIT(both, cudaStreamSynchronize(nullptr)); // sync: required
    overwrite(source + count);
    second[0] = 100;
    written = true;
    if (!planted::proving())
        while (!done)
            continue;
    overwrite(source + count);
    over = true;
    other.join();
    DOWNLOAD(copy, result, device, 3 * bytes); // sync: required
    expect("sum", sum(result, 3 * count), 13 * count);
}
