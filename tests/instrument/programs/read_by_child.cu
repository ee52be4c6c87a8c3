// A child that never uses CUDA, forked before its parent does, reads a result in its parent's memory and writes there
// by process_vm_readv and process_vm_writev; and asks for memory that is not mapped, and with a list that is not.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cerrno>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr size_t bytes = 16384, half = bytes / 2;

static char *result;
static char *const absent = reinterpret_cast<char *>(4096); // the system maps nothing there

static void child(int told)
{
    char letter, first[100] = {}, second[bytes] = {};
    const pid_t parent = getppid();
    if (read(told, &letter, 1) != 1)
        _exit(1);
    iovec here[] = {{first, sizeof first}, {second, bytes - sizeof first}},
          there[] = {{result, half}, {result + half, half}};
    const ssize_t got = process_vm_readv(parent, here, 2, there, 2, 0);
    std::printf("read %zd: %d %d\n", got, first[7], second[bytes - sizeof first - 1]);
    iovec own = {first, 10}, last = {result + bytes - 10, 10};
    std::memset(first, 9, sizeof first);
    std::printf("written %zd\n", process_vm_writev(parent, &own, 1, &last, 1, 0));
    iovec beyond[] = {{result, 50}, {absent, 50}};
    const ssize_t some = process_vm_readv(parent, here, 1, beyond, 2, 0);
    iovec nowhere = {absent, 50};
    const ssize_t none = process_vm_readv(parent, here, 1, &nowhere, 1, 0);
    std::printf("some %zd, none %zd %s\n", some, none, std::strerror(errno));
    const ssize_t unlisted = process_vm_readv(parent, reinterpret_cast<iovec *>(absent), 1, there, 2, 0);
    std::printf("no list %zd %s\n", unlisted, std::strerror(errno));
    std::fflush(stdout);
    _exit(0);
}

int main()
{
    int told[2];
    result = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pipe(told) != 0)
        return 1;
    const pid_t reader = fork();
    if (reader == 0)
        child(told[0]);
    prctl(PR_SET_PTRACER, reader);
    void *device = nullptr;
    cudaMalloc(&device, bytes);
    cudaMemset(device, 7, bytes);
    cudaMemcpy(result, device, bytes, cudaMemcpyDeviceToHost);
    int status = 1;
    if (write(told[1], "", 1) != 1 || waitpid(reader, &status, 0) != reader)
        return 1;
    std::printf("status %d, last %d\n", status, result[bytes - 1]);
    return 0;
}
