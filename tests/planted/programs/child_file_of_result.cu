// A child, forked before CUDA is used, computes into a file that it maps. The parent reads the file when the child has
// ended; or nobody reads it.
// variants: read, ignored
#include "planted.h"

#include <fcntl.h>
#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int compute(int file)
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int *device = device_integers(count);
    fill(device, count, 7);
    check(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    DOWNLOAD_ASYNC(static_cast<int *>(memory), device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, ignored unnecessary or required (undecidable)
    return planted::failed();
}

void program()
{
    const int file = memfd_create("planted", 0);
    expect("long", ftruncate(file, bytes), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(compute(file));
    int status = 0, result[count] = {};
    waitpid(child, &status, 0);
    expect("status", status, 0);
    if (variant("read")) {
        expect("read", pread(file, result, bytes, 0), bytes);
        expect("sum", sum(result, count), 7 * count);
    }
}
