/* Asks the system whether addresses can be read, by calls that would do nothing else, as libraries do that walk stacks;
 * while a result is watched. */
#include <cerrno>
#include <csignal>
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
    char *last =
        static_cast<char *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *closed = last + page;
    mprotect(closed, page, PROT_NONE);
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    tell("variable", ask(&file));
    tell("nothing", ask(gone));
    tell("guard", ask(mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    tell("path", access(static_cast<const char *>(gone), F_OK));
    tell("vectors", writev(file, static_cast<const iovec *>(gone), 1));
    tell("message", sendmsg(socket(AF_UNIX, SOCK_DGRAM, 0), static_cast<const msghdr *>(gone), 0));
    std::memset(last, 'x', page);
    tell("path in closed memory", access(closed, F_OK));
    tell("path into closed memory", access(closed - 1, F_OK));
    tell("vectors in closed memory", writev(file, reinterpret_cast<const iovec *>(closed), 1));
    tell("vectors into closed memory", writev(file, reinterpret_cast<const iovec *>(closed - 8), 2));
    tell("message in closed memory", sendmsg(file, reinterpret_cast<const msghdr *>(closed - 8), 0));
    tell("messages", syscall(SYS_sendmmsg, file, closed, 2, 0));
    tell("action", syscall(SYS_rt_sigaction, SIGSEGV, closed, nullptr, 8));
    tell("former action", syscall(SYS_rt_sigaction, SIGSEGV, nullptr, closed, 8));
    tell("former mask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, closed, 8));
    tell("alternate stack", syscall(SYS_sigaltstack, closed, nullptr));
    tell("new thread", syscall(SYS_clone3, closed, 88));
    tell("wait", syscall(SYS_ppoll, nullptr, 0, closed, nullptr, 8));
    tell("result", ask(result));
    return *static_cast<const int *>(result) == 0;
}
