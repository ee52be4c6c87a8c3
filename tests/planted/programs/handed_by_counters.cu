// A thread waits for a result, hands it over by one of C++20's means, and waits again. Whenever the reader comes, the
// first wait is enough. Or it hands over only that it is done, and nobody reads the result.
// variants: atomic, latch, barrier, counting, early, nobody
// like: handed_by_standard_library
#include "planted.h"

#include <atomic>
#include <barrier>
#include <latch>
#include <semaphore>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<int> word{0};
static std::latch latch{1};
static std::barrier<> barrier{2};
static std::counting_semaphore<4> counting{0};

static void hand_over()
{
    if (variant("latch")) {
        latch.count_down();
    } else if (variant("barrier")) {
        barrier.arrive_and_wait();
    } else if (variant("counting")) {
        counting.release();
    } else {
        word.store(1);
        word.notify_all();
    }
}

static void take_over()
{
    if (variant("latch"))
        latch.wait();
    else if (variant("barrier"))
        barrier.arrive_and_wait();
    else if (variant("counting"))
        counting.acquire();
    else
        word.wait(0);
}

void program()
{
    int *device = device_integers(count), *busy = device_integers(count);
    int *host = pinned_integers(count);
    std::thread reader([&] {
        take_over();
        if (!variant("nobody"))
            expect("sum", sum(host, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: atomic, latch, barrier, counting, early required, nobody unnecessary
    WAIT(first, cudaStreamSynchronize(nullptr));
    if (variant("early"))
        hand_over();
    fill(busy, count, 1);
    WAIT(second, cudaDeviceSynchronize()); // sync: unnecessary
    if (!variant("early"))
        hand_over();
    reader.join();
}
