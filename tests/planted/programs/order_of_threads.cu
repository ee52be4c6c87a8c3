// One thread waits for a first result, hands it over, and waits for a second one; the reader looks at the first result
// only later. So it relies on the first wait, though the second is the last one before it reads. Or both results are
// handed over after both waits, by a semaphore, by ending, or by starting the reader; then the second wait is enough.
// variants: semaphore, flag, lock, both, joined, started
#include "planted.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <semaphore.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static sem_t ready;
static std::atomic<bool> flag{false};
static std::mutex lock;
static std::condition_variable changed;
static bool set = false;

static void hand_over()
{
    if (variant("semaphore") || variant("both"))
        sem_post(&ready);
    flag.store(true, std::memory_order_release);
    std::lock_guard<std::mutex> held(lock);
    set = true;
    changed.notify_all();
}

static void take_over()
{
    if (variant("semaphore") || variant("both")) {
        sem_wait(&ready);
    } else if (variant("flag")) {
        while (!flag.load(std::memory_order_acquire))
            std::this_thread::yield();
    } else {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [] { return set; });
    }
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    sem_init(&ready, 0, 0);
    auto wait_twice = [&] {
        fill(device, count, 7);
        DOWNLOAD_ASYNC(first, device, bytes);
        // sync: semaphore, flag, lock required, both, joined, started conditionally unnecessary (keep for_second)
        WAIT(for_first, cudaStreamSynchronize(nullptr));
        if (!variant("both"))
            hand_over();
        add_slowly(device + count, device, count);
        DOWNLOAD_ASYNC(second, device + count, bytes);
        WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
        if (variant("both"))
            hand_over();
        if (!variant("joined"))
            expect("second", sum(second, count), 8 * count);
    };
    auto read_first = [&] {
        take_over();
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
        expect("first", sum(first, count), 7 * count);
    };
    if (variant("started")) {
        wait_twice();
        std::thread([&] { expect("first", sum(first, count), 7 * count); }).join();
        return;
    }
    if (variant("joined")) {
        std::thread(wait_twice).join();
        expect("first", sum(first, count), 7 * count);
        expect("second", sum(second, count), 8 * count);
        return;
    }
    std::thread reader(read_first);
    wait_twice();
    reader.join();
}
