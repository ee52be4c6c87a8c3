// Each of two or four threads drives a device of its own, and waits after every step for what it reads only at the end.
// Nothing that a device does uses memory of another one, so no device's work relies on the waits for the others.
// variants: two, four
#include "planted.h"

#include <thread>
#include <vector>

constexpr int count = 4096, most = 4, steps = 3;
constexpr size_t bytes = count * sizeof(int);
static int *host[most];

static void drive(int device)
{
    check(cudaSetDevice(device));
    int *memory = device_integers(count);
    host[device] = pinned_integers(count);
    for (int step = 0; step < steps; ++step) {
        fill(memory, count, step + device);
        WAIT(of_step, cudaDeviceSynchronize()); // sync: unnecessary
    }
    DOWNLOAD_ASYNC(host[device], memory, bytes);
    WAIT(of_end, cudaDeviceSynchronize()); // sync: required
}

void program()
{
    const int devices = variant("two") ? 2 : most;
    std::vector<std::thread> threads;
    for (int device = 0; device < devices; ++device)
        threads.emplace_back(drive, device);
    for (std::thread &thread : threads)
        thread.join();
    for (int device = 0; device < devices; ++device)
        expect("last", sum(host[device], count), (steps - 1 + device) * count);
}
