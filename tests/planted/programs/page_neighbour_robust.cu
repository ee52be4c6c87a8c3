// A robust mutex lies on the page of a download. A thread ends while it holds the mutex: the kernel marks it, and the
// next owner is told.
// variants: read, never
#include "planted.h"

#include <cerrno>
#include <pthread.h>

constexpr int count = 64;
constexpr size_t page_bytes = 4096;

static void *hold(void *mutex)
{
    expect("locked", pthread_mutex_lock(static_cast<pthread_mutex_t *>(mutex)), 0);
    return nullptr;
}

void program()
{
    void *page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(cudaHostRegister(page, page_bytes, 0));
    pthread_mutex_t *mutex = static_cast<pthread_mutex_t *>(page);
    int *host = static_cast<int *>(page) + page_bytes / 2 / sizeof(int), *device = device_integers(count);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary or required (undecidable)
    pthread_t thread;
    expect("started", pthread_create(&thread, nullptr, hold, mutex), 0);
    expect("joined", pthread_join(thread, nullptr), 0);
    timespec until = {};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    expect("owner died", pthread_mutex_timedlock(mutex, &until), EOWNERDEAD);
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
