// The word that the kernel clears when a thread ends lies on the page of a download: of a thread that the program
// cloned itself, before the download, before or after the wait, or of one that named another word.
// variants: before, between, after, named, unread
#include "planted.h"

#include <cerrno>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>

constexpr int count = 64;
constexpr size_t page_bytes = 4096;

static int *word, *go;

/* A cloned thread has the thread-local variables of the one that made it, so it calls no function of the C library. */
static inline long direct(long number, long a, long b, long c)
{
    long result;
    register long fourth __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

static int sleep_then_end(void *)
{
    while (__atomic_load_n(go, __ATOMIC_ACQUIRE) == 0)
        direct(SYS_futex, reinterpret_cast<long>(go), FUTEX_WAIT, 0);
    direct(SYS_exit, 0, 0, 0);
    return 0;
}

static void start()
{
    static char stack[1 << 16] __attribute__((aligned(4096)));
    *word = 1;
    if (variant("named")) {
        std::thread([] {
            syscall(SYS_set_tid_address, word);
            sleep_then_end(nullptr);
        }).detach();
        return;
    }
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    expect("cloned",
           clone(sleep_then_end, stack + sizeof stack, flags | CLONE_CHILD_CLEARTID, nullptr, nullptr, nullptr, word) >
               0,
           1);
}

/* As a join does it; gives up after a second. */
static bool ended()
{
    const timespec briefly = {0, 20'000'000};
    __atomic_store_n(go, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, go, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    for (int look = 0; look < 50; look++) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
            return true;
        syscall(SYS_futex, word, FUTEX_WAIT, 1, &briefly, nullptr, 0);
    }
    return false;
}

void program()
{
    char *page =
        static_cast<char *>(mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    check(cudaHostRegister(page, page_bytes, 0));
    word = reinterpret_cast<int *>(page);
    go = reinterpret_cast<int *>(page + page_bytes);
    int *host = reinterpret_cast<int *>(page + page_bytes / 2), *device = device_integers(count);
    if (!variant("between") && !variant("after"))
        start();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    if (variant("between"))
        start();
    // sync: before, between, after, named required, unread unnecessary or required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("after"))
        start();
    expect("ended", ended(), 1);
    if (!variant("unread"))
        expect("sum", sum(host, count), 7 * count);
    settle();
}
