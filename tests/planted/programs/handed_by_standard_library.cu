// One thread waits for a first result, hands it over by something of the C++ library, and waits for a second one. The
// reader looks at the first one only later.
// variants: latch, atomic, counting, future, barrier
#include "planted.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <latch>
#include <semaphore>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::latch latch(1);
static std::atomic<int> word = 0;
static std::counting_semaphore<4> semaphore(0);
static std::promise<int *> promise;
static std::barrier<> barrier(2);

static void hand_over(int *result)
{
    if (variant("latch"))
        latch.count_down();
    if (variant("atomic")) {
        word = 1;
        word.notify_all();
    }
    if (variant("counting"))
        semaphore.release();
    if (variant("future"))
        promise.set_value(result);
    if (variant("barrier"))
        barrier.arrive_and_wait();
}

static int *take_over(int *result)
{
    if (variant("latch"))
        latch.wait();
    if (variant("atomic"))
        word.wait(0);
    if (variant("counting"))
        semaphore.acquire();
    if (variant("future"))
        return promise.get_future().get();
    if (variant("barrier"))
        barrier.arrive_and_wait();
    return result;
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    std::thread reader([&] {
        int *result = take_over(first);
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
        expect("first", sum(result, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    WAIT(one, cudaDeviceSynchronize()); // sync: required
    hand_over(first);
    fill(device + count, count, 8);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(two, cudaDeviceSynchronize()); // sync: required
    expect("second", sum(second, count), 8 * count);
    reader.join();
}
