/* Ways in which a program reads a clock, by name; all in seconds. */
#ifndef FFM_TEST_CLOCKS_H
#define FFM_TEST_CLOCKS_H

#include <chrono>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <sys/syscall.h>
#include <sys/time.h>

static double seconds(const timespec &time)
{
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

#ifdef ASKS_THE_KERNEL
/* By a system call of the program's own, which no function of the C library makes for it. */
static double asked_the_kernel()
{
    timespec time;
    long result;
    asm volatile("mov %1, %%eax\n\tsyscall"
                 : "=&a"(result)
                 : "i"(SYS_clock_gettime), "D"(CLOCK_MONOTONIC), "S"(&time)
                 : "rcx", "r11", "memory");
    return result == 0 ? seconds(time) : 0;
}
#endif

/* The kernel's code in the process, past the C library. */
static double asked_the_page_of_the_kernel()
{
    using Read = int (*)(clockid_t, timespec *);
    void *page = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    const Read read = page == nullptr ? nullptr : reinterpret_cast<Read>(dlsym(page, "__vdso_clock_gettime"));
    timespec time;
    return read == nullptr || read(CLOCK_MONOTONIC, &time) != 0 ? 0 : seconds(time);
}

static double now(const std::string &how)
{
#ifdef ASKS_THE_KERNEL
    if (how == "kernel")
        return asked_the_kernel();
#endif
    if (how == "gettimeofday") {
        timeval time;
        gettimeofday(&time, nullptr);
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
    if (how == "chrono") {
        using Clock = std::chrono::steady_clock;
        return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    }
    if (how == "vdso")
        return asked_the_page_of_the_kernel();
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return seconds(time);
}

#endif
