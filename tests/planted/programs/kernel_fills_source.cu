// System calls of many kinds store their answers into the source of an asynchronous upload, which the GPU has not read
// yet: without the wait before each, the GPU gets the answer. Or they store them elsewhere; then the waits before those
// that tell the time may be there for timing.
// variants: source, beside
#include "planted.h"

#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int);

static const char *const calls[] = {"getrandom", "getcwd",     "uname",    "sysinfo", "clock", "getdents", "readlink",
                                    "poll",      "epoll",      "statx",    "option",  "wait",  "limits",   "mincore",
                                    "pipe",      "socketpair", "affinity", "siocinq", "mask",  "times",    "name"};

/* Whether the call ended well. */
static bool stores(const std::string &call, void *place)
{
    int ends[2];
    char *text = static_cast<char *>(place);
    if (call == "getrandom")
        return getrandom(place, 256, 0) == 256;
    if (call == "getcwd")
        return syscall(SYS_getcwd, text, 4096) > 0;
    if (call == "uname")
        return uname(static_cast<utsname *>(place)) == 0;
    if (call == "sysinfo")
        return sysinfo(static_cast<struct sysinfo *>(place)) == 0;
    if (call == "clock")
        return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, place) == 0;
    if (call == "getdents")
        return syscall(SYS_getdents64, open("/", O_RDONLY | O_DIRECTORY), place, 4096) > 0;
    if (call == "readlink")
        return readlink("/proc/self/exe", text, 512) > 0;
    if (call == "poll") {
        pollfd *asked = static_cast<pollfd *>(place);
        expect("pipe", pipe(ends), 0);
        *asked = {ends[1], POLLOUT, 0};
        return poll(asked, 1, 0) == 1;
    }
    if (call == "epoll") {
        const int set = epoll_create1(0);
        epoll_event event = {};
        event.events = EPOLLOUT;
        expect("pipe", pipe(ends), 0);
        epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event);
        return epoll_wait(set, static_cast<epoll_event *>(place), 4, 0) == 1;
    }
    if (call == "statx")
        return statx(AT_FDCWD, "/", 0, STATX_ALL, static_cast<struct statx *>(place)) == 0;
    if (call == "option") {
        socklen_t *length = static_cast<socklen_t *>(place);
        const int file = socket(AF_UNIX, SOCK_STREAM, 0);
        *length = sizeof(int);
        return getsockopt(file, SOL_SOCKET, SO_TYPE, length + 1, length) == 0;
    }
    if (call == "wait") {
        const pid_t child = fork();
        if (child == 0)
            _exit(3);
        return syscall(SYS_wait4, child, place, 0, static_cast<char *>(place) + 64) == child;
    }
    if (call == "limits")
        return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, place) == 0;
    if (call == "mincore")
        return syscall(SYS_mincore, (uintptr_t)program & ~4095ul, 4096, place) == 0;
    if (call == "pipe")
        return syscall(SYS_pipe, place) == 0;
    if (call == "socketpair")
        return socketpair(AF_UNIX, SOCK_STREAM, 0, static_cast<int *>(place)) == 0;
    if (call == "affinity")
        return syscall(SYS_sched_getaffinity, 0, 128, place) > 0;
    if (call == "siocinq") {
        expect("pipe", pipe(ends), 0);
        return ioctl(ends[0], FIONREAD, place) == 0;
    }
    if (call == "mask")
        return syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, place, 8) == 0;
    if (call == "times")
        return syscall(SYS_times, place) != -1;
    if (call == "name")
        return prctl(PR_GET_NAME, text) == 0;
    return false;
}

void program()
{
    int *slow = device_integers(count), *device = device_integers(count);
    void *memory = nullptr;
    check(cudaHostAlloc(&memory, 2 * bytes, cudaHostAllocDefault));
    int *source = reinterpret_cast<int *>((reinterpret_cast<uintptr_t>(memory) + 4095) & ~uintptr_t(4095));
    int *back = pinned_integers(count);
    for (const char *call : calls) {
        std::fill_n(source, count, 0x05050505);
        fill(slow, count, 1);
        UPLOAD_ASYNC(device, source, 4096); // transfer: needed and no-op and unseen
        DOWNLOAD_ASYNC(back, device, 4096);
        // sync: source required, beside conditionally unnecessary and required (undecidable)
        WAIT(before, cudaStreamSynchronize(nullptr));
        expect(call, stores(call, variant("beside") ? source + 1024 : source), true);
        fill(slow, count, 1);
        // sync: source unnecessary, beside required
        WAIT(last, cudaDeviceSynchronize());
        expect("sum", sum(back, 1024), 1024ll * 0x05050505);
    }
}
