/* Asks the system whether addresses can be read, by calls that would do nothing else, as libraries do that walk stacks;
 * while a result is watched. */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static void tell(const char *what, long result)
{
    std::printf("%s: %s\n", what, result == -1 ? std::strerror(errno) : "done");
}

/* The kernel looks at the set before it refuses what is to be done with it. */
static long ask(const void *address)
{
    return syscall(SYS_rt_sigprocmask, ~0, address, nullptr, sizeof(long));
}

int main()
{
    constexpr std::size_t page = 4096;
    void *device = nullptr, *result = nullptr;
    void *gone = reinterpret_cast<void *>(0x8000); /* the system maps nothing so low */
    if (cudaMalloc(&device, page) != cudaSuccess || cudaMallocHost(&result, page) != cudaSuccess ||
        cudaMemset(device, 7, page) != cudaSuccess ||
        cudaMemcpy(result, device, page, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    tell("variable", ask(&file));
    tell("nothing", ask(gone));
    tell("guard", ask(mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    tell("path", access(static_cast<const char *>(gone), F_OK));
    tell("vectors", writev(file, static_cast<const iovec *>(gone), 1));
    tell("message", sendmsg(socket(AF_UNIX, SOCK_DGRAM, 0), static_cast<const msghdr *>(gone), 0));
    tell("result", ask(result));
    return *static_cast<const int *>(result) == 0;
}
