// One thread waits for a result, and tells another by a flag, which later forks a child that looks at it. Meanwhile the
// first thread waits for a second result.
// variants: read
#include "planted.h"

#include <atomic>
#include <chrono>
#include <sys/wait.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> flag{false};

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    std::thread other([&] {
        while (!flag.load(std::memory_order_acquire))
            std::this_thread::yield();
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 1200 : 150));
        const pid_t child = fork();
        if (child == 0)
            _exit(sum(first, count) == 7 * count ? 0 : 1);
        int status = 0;
        waitpid(child, &status, 0);
        expect("child", WEXITSTATUS(status), 0);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    WAIT(for_first, cudaStreamSynchronize(nullptr)); // sync: required
    flag.store(true, std::memory_order_release);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    expect("second", sum(second, count), 8 * count);
    other.join();
}
