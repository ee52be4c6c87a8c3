// A thread waits for a result twice, and hands it over between the two waits, or after both. ffm does not see when, but
// the first wait is enough whenever it does.
// variants: condition, early, rwlock, c11, word, future
#include "planted.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <threads.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::mutex lock;
static std::condition_variable changed;
static bool set = false;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static std::atomic<int> flag{0};
static mtx_t plain;
static cnd_t told;
static std::promise<int> promise;

static void hand_over()
{
    if (variant("mutex")) {
        std::lock_guard<std::mutex> held(lock);
        set = true;
    } else if (variant("condition") || variant("early")) {
        std::lock_guard<std::mutex> held(lock);
        set = true;
        changed.notify_one();
    } else if (variant("rwlock")) {
        pthread_rwlock_wrlock(&rw);
        set = true;
        pthread_rwlock_unlock(&rw);
    } else if (variant("flag")) {
        flag.store(1, std::memory_order_release);
    } else if (variant("word")) {
        flag.store(1);
        syscall(SYS_futex, &flag, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    } else if (variant("c11")) {
        mtx_lock(&plain);
        set = true;
        cnd_signal(&told);
        mtx_unlock(&plain);
    } else {
        promise.set_value(1);
    }
}

static void take_over()
{
    if (variant("mutex")) {
        for (bool done = false; !done; std::this_thread::yield()) {
            std::lock_guard<std::mutex> held(lock);
            done = set;
        }
    } else if (variant("condition") || variant("early")) {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [] { return set; });
    } else if (variant("rwlock")) {
        for (bool done = false; !done; std::this_thread::yield()) {
            pthread_rwlock_rdlock(&rw);
            done = set;
            pthread_rwlock_unlock(&rw);
        }
    } else if (variant("flag")) {
        while (!flag.load(std::memory_order_acquire))
            std::this_thread::yield();
    } else if (variant("word")) {
        while (!flag.load())
            syscall(SYS_futex, &flag, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    } else if (variant("c11")) {
        mtx_lock(&plain);
        while (!set)
            cnd_wait(&told, &plain);
        mtx_unlock(&plain);
    } else {
        promise.get_future().wait();
    }
}

void program()
{
    int *device = device_integers(count), *busy = device_integers(count);
    int *host = pinned_integers(count);
    mtx_init(&plain, mtx_plain);
    cnd_init(&told);
    std::thread reader([&] {
        take_over();
        if (variant("early") && !planted::proving())
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
        expect("sum", sum(host, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(first, cudaStreamSynchronize(nullptr)); // sync: required
    if (variant("early"))
        hand_over();
    fill(busy, count, 1);
    WAIT(second, cudaDeviceSynchronize()); // sync: unnecessary
    if (!variant("early"))
        hand_over();
    reader.join();
}
