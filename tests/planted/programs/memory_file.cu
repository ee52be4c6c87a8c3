// The result lies in a file in memory that is mapped: others read the file and never the mapping. Or the file is
// sealed, copied by the kernel, or looked at through a second mapping.
// variants: pread, second_mapping, copied, spliced, child, never
#include "planted.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static long long look(int file)
{
    std::vector<int> found(count);
    int ends[2];
    if (variant("pread"))
        return pread(file, found.data(), bytes, 0) == ssize_t(bytes) ? sum(found.data(), count) : -1;
    if (variant("second_mapping"))
        return sum(static_cast<int *>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0)), count);
    if (variant("copied")) {
        const int copy = memfd_create("copy", 0);
        off_t from = 0;
        if (sendfile(copy, file, &from, bytes) != ssize_t(bytes))
            return -1;
        return pread(copy, found.data(), bytes, 0) == ssize_t(bytes) ? sum(found.data(), count) : -1;
    }
    if (variant("spliced")) {
        loff_t from = 0;
        expect("pipe", pipe(ends), 0);
        if (splice(file, &from, ends[1], nullptr, bytes, 0) != ssize_t(bytes))
            return -1;
        return read(ends[0], found.data(), bytes) == ssize_t(bytes) ? sum(found.data(), count) : -1;
    }
    if (variant("child")) {
        const pid_t child = fork();
        if (child == 0)
            _exit(pread(file, found.data(), bytes, 0) == ssize_t(bytes) && sum(found.data(), count) == 7 * count);
        int status = 0;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status) ? 7 * count : 0;
    }
    return 7 * count;
}

void program()
{
    int *device = device_integers(count);
    const int file = memfd_create("planted", 0);
    expect("size", ftruncate(file, bytes), 0);
    void *host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: pread, second_mapping, copied, spliced, child required, never required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    expect("sum", look(file), 7 * count);
    settle();
}
