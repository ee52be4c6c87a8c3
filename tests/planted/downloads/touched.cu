// A buffer is downloaded, and the program touches all of it, a part of a page's length, two bytes far apart, or
// nothing; or it has a system call, the GPU or a forked child read it, moves it, or unmaps it. In a loop each download
// overwrites the one before.
#include "planted.h"

#include <fcntl.h>
#include <sys/wait.h>

constexpr int count = 64 * 1024;
constexpr size_t bytes = count * sizeof(int);
constexpr int part = count / 4; // begins a page
constexpr int part_count = 1000;

static int *destination()
{
    if (variant("gpu"))
        return pinned_integers(count);
    if (variant("loop"))
        return pageable_integers(count, 1);
    return static_cast<int *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void use(int *host)
{
    if (variant("whole"))
        expect("sum", sum(host, count), 7 * count);
    if (variant("part") || variant("loop") || variant("unmapped"))
        expect("sum", sum(host + part, part_count), 7 * part_count);
    if (variant("ends"))
        expect("sum", host[0] + host[count - 1], 14);
    if (variant("system_call")) {
        const int file = open("/dev/null", O_WRONLY);
        expect("written", write(file, host + part, part_count * sizeof(int)), part_count * sizeof(int));
    }
    if (variant("gpu")) {
        UPLOAD_ASYNC(device_integers(count), host + count / 2, bytes / 2);
        check(cudaDeviceSynchronize());
    }
    if (variant("forked")) {
        expect("first", host[0], 7);
        const pid_t child = fork();
        if (child == 0)
            _exit(sum(host, count) == 7 * count ? 0 : 1);
        int status = 1;
        waitpid(child, &status, 0);
        expect("child", status, 0);
    }
    if (variant("unmapped"))
        munmap(host, bytes);
    if (variant("moved")) {
        expect("first", host[0], 7);
        void *moved = mremap(host, bytes, 2 * bytes, MREMAP_MAYMOVE);
        expect("sum", sum(static_cast<int *>(moved), count), 7 * count);
    }
}

void program()
{
    int *device = device_integers(count);
    int *host = destination();
    for (int turn = 0; turn < (variant("loop") ? 10 : 1); ++turn) {
        fill(device, count, 7);
        DOWNLOAD(copy, host, device, bytes);
        use(host);
    }
}
