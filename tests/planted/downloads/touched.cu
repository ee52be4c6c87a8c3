// Buffers are downloaded, and the program touches all of one, a part of a page's length, two bytes far apart, or
// nothing; has a system call or the GPU read it, or unmaps it; in a loop each download overwrites the one before. Of
// those that it moves, or that a child has which it forks, it cannot be told. variants: told, lost
#include "planted.h"

#include <fcntl.h>
#include <sys/wait.h>

constexpr int count = 64 * 1024;
constexpr size_t bytes = count * sizeof(int);
constexpr int part = count / 4; // begins a page
constexpr int part_count = 1000;

static int *mapped()
{
    return static_cast<int *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int *downloaded(int *host)
{
    static int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes);
    return host;
}

static void expect_part(const int *host)
{
    expect("part", sum(host + part, part_count), 7 * part_count);
}

static void tell()
{
    expect("whole", sum(downloaded(mapped()), count), 7 * count);
    expect_part(downloaded(mapped()));
    const int *ends = downloaded(mapped());
    expect("ends", ends[0] + ends[count - 1], 14);
    downloaded(mapped());
    int *again = pageable_integers(count, 1);
    for (int turn = 0; turn < 3; ++turn)
        expect_part(downloaded(again));
    const int file = open("/dev/null", O_WRONLY);
    expect("written", write(file, downloaded(mapped()) + part, part_count * sizeof(int)), part_count * sizeof(int));
    int *unmapped = downloaded(mapped());
    expect_part(unmapped);
    munmap(unmapped, bytes);
    UPLOAD_ASYNC(device_integers(count), downloaded(pinned_integers(count)) + count / 2, bytes / 2);
    check(cudaDeviceSynchronize());
}

static void lose()
{
    int *moved = downloaded(mapped());
    expect("first", moved[0], 7);
    moved = static_cast<int *>(mremap(moved, bytes, 2 * bytes, MREMAP_MAYMOVE));
    expect("moved", sum(moved, count), 7 * count);
    const int *inherited = downloaded(mapped());
    expect("first", inherited[0], 7);
    const pid_t child = fork();
    if (child == 0)
        _exit(sum(inherited, count) == 7 * count ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    expect("child", status, 0);
}

void program()
{
    variant("told") ? tell() : lose();
}
