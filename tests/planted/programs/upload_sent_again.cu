// A source is sent twice without a change. While that is in flight, the CPU writes next to it, or starts a process.
// After the second wait the CPU overwrites the source, a system call does, or nobody.
// variants: kept, beside, written, filled, forked
#include "planted.h"

#include <sys/wait.h>

constexpr int count = 512; // half a page
constexpr size_t bytes = count * sizeof(int);

static void start_process()
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, nullptr, 0);
}

void program()
{
    int *busy = device_integers(1), *device = device_integers(count);
    int *source = pinned_integers(2 * count, 5);
    int *other = pageable_integers(count, 9), *result = pageable_integers(count);
    int file = memfd_create("file", 0);
    expect("written", pwrite(file, other, bytes, 0), bytes);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(first, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    for (int turn = 0; turn < 4; ++turn)
        fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes); // transfer: no-op
    if (variant("beside"))
        for (int index = count; index < 2 * count; ++index)
            source[index] = 1;
    if (variant("forked"))
        start_process();
    WAIT(second, cudaStreamSynchronize(nullptr)); // sync: kept, beside unnecessary, written, filled, forked required
    for (int index = 0; index < count && (variant("written") || variant("forked")); ++index)
        source[index] = 100;
    if (variant("filled"))
        expect("read", pread(file, source, bytes, 0), bytes);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 5 * count);
}
