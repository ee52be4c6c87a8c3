// One thread waits for a first result, hands it over by a byte of a pipe or a socket, by a counter of the kernel, or by
// a word for which the reader sleeps; and waits for a second result. The reader looks at the first one only later.
// variants: pipe, socket, counter, word, queue
#include "planted.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <linux/futex.h>
#include <mutex>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int ends[2];
static uint32_t word = 0;
static std::mutex lock;
static std::condition_variable changed;
static std::deque<int *> queue;

static void hand_over(int *result)
{
    const uint64_t one = 1;
    if (variant("queue")) {
        std::lock_guard<std::mutex> held(lock);
        queue.push_back(result);
        changed.notify_one();
    } else if (variant("word")) {
        __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    } else {
        expect("told", write(ends[1], &one, sizeof one), sizeof one);
    }
}

static void take_over()
{
    uint64_t one = 0;
    if (variant("queue")) {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [] { return !queue.empty(); });
        queue.pop_front();
    } else if (variant("word")) {
        while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
            syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    } else {
        expect("heard", read(ends[0], &one, sizeof one), sizeof one);
    }
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    if (variant("pipe"))
        expect("pipe", pipe(ends), 0);
    if (variant("socket"))
        expect("socket", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (variant("counter"))
        ends[0] = ends[1] = eventfd(0, 0);
    std::thread reader([&] {
        take_over();
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
        expect("first", sum(first, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    WAIT(for_first, cudaStreamSynchronize(nullptr)); // sync: required
    hand_over(first);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    expect("second", sum(second, count), 8 * count);
    reader.join();
}
