// While another thread's child shares the program's memory, so that no page is protected, the CPU uses what a wait
// protects, and then replaces or releases it.
// variants: read_replaced, read_released, written
#include "planted.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

static void read(int *device)
{
    int *host = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: read_replaced, read_released required, written absent
    expect("sum", sum(host, count), 7LL * count);
    if (variant("read_replaced")) {
        fill(device, count, 8);
        DOWNLOAD(next, host, device, bytes); // sync: read_replaced required, read_released, written absent
        expect("next", sum(host, count), 8LL * count);
    }
    std::free(host);
}

static void write(int *device)
{
    int *source = pinned_integers(count, 5);
    fill(device, count, 1);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: written required, read_replaced, read_released absent
    std::fill_n(source, count, 100);
    add_slowly(device, device, count);
    UPLOAD_ASYNC(device + count, source, bytes);
    int *result = pageable_integers(2 * count);
    DOWNLOAD(result, result, device, 2 * bytes); // sync: written required, read_replaced, read_released absent
    expect("result", sum(result, 2 * count), 106LL * count);
}

void program()
{
    std::atomic<bool> begun{false}, over{false};
    int *device = device_integers(2 * count);
    std::thread other([&] {
        pid_t child = vfork();
        if (child == 0) {
            begun = true;
            while (!over)
                usleep(1000);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        expect("child", status, 0);
    });
    while (!begun)
        usleep(1000);
    if (variant("written"))
        write(device);
    else
        read(device);
    over = true;
    other.join();
}
