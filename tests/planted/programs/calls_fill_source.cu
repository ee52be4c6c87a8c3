// The kernel, or the C library in its place, fills the source of an upload that is in flight, by calls that hand out a
// little: random bytes, names, limits, descriptors, times. Or the call fills other memory.
// variants: random, directory, names, link, usage, pipe, status, mask, ready, limits, processors, entries, resident, time, elsewhere
#include "planted.h"

#include <csignal>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

/* Fills memory there; returns whether it did. */
static bool filled(char *place)
{
    if (variant("random") || variant("elsewhere"))
        return getrandom(place, 64, 0) == 64;
    if (variant("directory"))
        return getcwd(place, bytes) != nullptr;
    if (variant("names"))
        return uname(reinterpret_cast<utsname *>(place)) == 0;
    if (variant("link"))
        return readlink("/proc/self/exe", place, bytes) > 0;
    if (variant("usage"))
        return getrusage(RUSAGE_SELF, reinterpret_cast<rusage *>(place)) == 0;
    if (variant("pipe"))
        return pipe2(reinterpret_cast<int *>(place), O_CLOEXEC) == 0;
    if (variant("status")) {
        const pid_t child = fork();
        if (child == 0)
            _exit(7);
        return waitpid(child, reinterpret_cast<int *>(place), 0) == child;
    }
    if (variant("mask")) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGUSR2);
        return sigprocmask(SIG_BLOCK, &one, nullptr) == 0 &&
               sigprocmask(SIG_BLOCK, nullptr, reinterpret_cast<sigset_t *>(place)) == 0;
    }
    if (variant("limits"))
        return getrlimit(RLIMIT_NOFILE, reinterpret_cast<rlimit *>(place)) == 0;
    if (variant("processors"))
        return sched_getaffinity(0, 128, reinterpret_cast<cpu_set_t *>(place)) == 0;
    if (variant("time"))
        return clock_gettime(CLOCK_TAI, reinterpret_cast<timespec *>(place)) == 0;
    if (variant("resident"))
        return mincore(reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(&count) & ~4095UL), 4096,
                       reinterpret_cast<unsigned char *>(place)) == 0;
    if (variant("entries")) {
        const int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
        return syscall(SYS_getdents64, folder, place, bytes) > 0;
    }
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
        return false;
    const int set = epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = 0x1234567812345678;
    return epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &wanted) == 0 &&
           epoll_wait(set, reinterpret_cast<epoll_event *>(place), 1, 0) == 1;
}

void program()
{
    int *device = device_integers(count), *slow = device_integers(count), *source = behind_zeros(count);
    int *other = pageable_integers(count), *back = pinned_integers(count, 1);
    fill(slow, count, 1);
    UPLOAD_ASYNC(device, source, bytes);
    // sync: elsewhere unnecessary, random, directory, names, link, usage, pipe, status, mask, ready, limits, processors, entries, resident, time required
    WAIT(last, cudaStreamSynchronize(nullptr));
    expect("filled", filled(reinterpret_cast<char *>(variant("elsewhere") ? other : source)), 1);
    DOWNLOAD(back, back, device, bytes); // sync: required
    expect("sent", sum(back, count), 0);
}
