// A thread fills memory, waits for that, and hands it over; another one launches work that reads it. Meanwhile the
// other one waits for the whole device, late enough to cover the work by chance. With a semaphore the launch certainly
// comes after the first thread's wait. What a flag hands over, nobody sees: it may rely on either wait.
// variants: semaphore, flag
#include "planted.h"

#include <atomic>
#include <chrono>
#include <semaphore.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static sem_t ready;
static std::atomic<bool> flag{false};

static void hand_over()
{
    if (variant("semaphore"))
        sem_post(&ready);
    flag.store(true, std::memory_order_release);
}

static void take_over()
{
    if (variant("semaphore"))
        sem_wait(&ready);
    while (!flag.load(std::memory_order_acquire))
        std::this_thread::yield();
}

static void sleep_if(bool late)
{
    if (late)
        std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
}

void program()
{
    cudaStream_t filling, reading;
    check(cudaStreamCreateWithFlags(&filling, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&reading, cudaStreamNonBlocking));
    int *device = device_integers(2 * count), *result = pinned_integers(count);
    sem_init(&ready, 0, 0);
    std::thread filler([&] {
        sleep_if(planted::proving()); /* later than the other thread's wait */
        fill(device, count, 7, filling);
        WAIT(filled, cudaStreamSynchronize(filling)); // sync: required
        hand_over();
    });
    sleep_if(!planted::proving());
    // sync: flag required (undecidable), semaphore unnecessary or conditionally unnecessary (keep filled)
    WAIT(by_chance, cudaDeviceSynchronize());
    take_over();
    add_slowly(device + count, device, count, reading);
    DOWNLOAD_ASYNC(result, device + count, bytes, reading);
    WAIT(added, cudaStreamSynchronize(reading)); // sync: required
    filler.join();
    expect("result", sum(result, count), 8 * count);
}
