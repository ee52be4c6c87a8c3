// One thread waits for a first result and for a second one, and looks at the first itself, or has a thread look that it
// tells by a semaphore. Another thread, told by a flag after the first wait, looks at the first result after them: it
// relies on the first wait.
// variants: itself, told
#include "planted.h"

#include <atomic>
#include <chrono>
#include <semaphore.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> flag{false};
static sem_t both;

static void look(const char *who, const int *first)
{
    expect(who, sum(first, count), 7 * count);
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    sem_init(&both, 0, 0);
    std::thread last([&] {
        while (!flag.load(std::memory_order_acquire))
            std::this_thread::yield();
        if (!planted::proving()) /* later than the others, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 1200 : 150));
        look("last", first);
    });
    std::thread told([&] {
        sem_wait(&both);
        if (variant("told"))
            look("told", first);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    WAIT(for_first, cudaStreamSynchronize(nullptr)); // sync: required
    flag.store(true, std::memory_order_release);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    sem_post(&both);
    expect("second", sum(second, count), 8 * count);
    if (variant("itself"))
        look("itself", first);
    last.join();
    told.join();
}
