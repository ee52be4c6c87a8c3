// Frames of one stream's kernels come back on another stream, to two places in turns, where this process never reads
// them: it reads them where their memory is mapped a second time, or a child reads them, in memory that both share,
// from outside, or in its copy. Or the child is there and reads nothing of them.
// variants: alias, shared, outside, copied, idle
#include "planted.h"

#include <sys/uio.h>
#include <sys/wait.h>

constexpr int count = 2048, turns = 6;
constexpr size_t bytes = count * sizeof(int);

static int to_child[2], to_parent[2];

/* Answers with the last integer of each frame whose address it is sent. */
static void serve(pid_t parent)
{
    const int *frame = nullptr;
    close(to_child[1]);
    while (read(to_child[0], &frame, sizeof frame) == sizeof frame) {
        int found = 0;
        iovec here = {&found, sizeof found}, there = {const_cast<int *>(frame + count - 1), sizeof found};
        if (variant("shared"))
            found = frame[count - 1];
        else if (variant("outside") && process_vm_readv(parent, &here, 1, &there, 1, 0) < 0)
            found = -1;
        if (write(to_parent[1], &found, sizeof found) < 0)
            break;
    }
    _exit(0);
}

static int asked(const int *frame)
{
    int found = -1;
    if (write(to_child[1], &frame, sizeof frame) != sizeof frame ||
        read(to_parent[0], &found, sizeof found) != sizeof found)
        return -1;
    return found;
}

/* By a child that has a copy of all memory. */
static int copied(const int *frame)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(frame[count - 1]);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

void program()
{
    cudaStream_t computes = independent_stream(), returns = independent_stream();
    int *made[2] = {device_integers(count), device_integers(count)};
    const int file = memfd_create("frames", 0);
    expect("grown", ftruncate(file, 2 * bytes), 0);
    expect("pipes", pipe(to_child) + pipe(to_parent), 0);
    const int flags = variant("alias") || variant("shared") ? MAP_SHARED : MAP_PRIVATE;
    int *frames = static_cast<int *>(mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, flags, file, 0));
    const int *alias = static_cast<int *>(mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    check(cudaHostRegister(frames, 2 * bytes, 0));
    const pid_t parent = getpid(), child = variant("alias") || variant("copied") ? 0 : fork();
    if (child == 0 && getpid() != parent)
        serve(parent);
    long long found = 0, expected = 0;
    for (int turn = 0; turn < turns; ++turn) {
        int *frame = frames + turn % 2 * count;
        fill(made[turn % 2], count, 10 + turn, computes);
        // sync: alias, shared, outside, copied required, idle unnecessary
        WAIT(between, cudaStreamSynchronize(computes));
        DOWNLOAD_ASYNC(frame, made[turn % 2], bytes, returns); // transfer: needed
        // sync: alias, shared, outside, copied required, idle unnecessary
        WAIT(returned, cudaStreamSynchronize(returns));
        if (variant("alias"))
            found += alias[turn % 2 * count + count - 1];
        else
            found += variant("copied") ? copied(frame) : asked(frame);
        expected += variant("idle") ? 0 : 10 + turn;
    }
    expect("frames", found, expected);
    fill(made[0], count, 6, computes);
    int *back = pinned_integers(count);
    DOWNLOAD_ASYNC(back, made[0], bytes, computes); // transfer: needed
    WAIT(end, cudaStreamSynchronize(computes));     // sync: required
    expect("made", back[count - 1], 6);
    if (child != 0) {
        close(to_child[1]);
        waitpid(child, nullptr, 0);
    }
}
