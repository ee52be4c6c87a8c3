// A handler of a signal posts the semaphore that the reader waits for. Between which waits of the thread that it
// interrupts it does so is chance: the reader may rely on the first. A post in the thread's own course comes after
// both.
// variants: handler, plain
#include "planted.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <semaphore.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static sem_t ready;
static std::atomic<bool> waited{false};

static void post(int)
{
    sem_post(&ready);
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    sem_init(&ready, 0, 0);
    std::signal(SIGUSR1, post);
    const pthread_t waiter = pthread_self();
    std::thread reader([&] {
        while (!waited.load())
            std::this_thread::yield();
        if (!planted::proving()) /* until after the second wait */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 1200 : 150));
        if (variant("handler"))
            pthread_kill(waiter, SIGUSR1);
        sem_wait(&ready);
        expect("first", sum(first, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    // sync: handler required, plain conditionally unnecessary (keep for_second)
    WAIT(for_first, cudaStreamSynchronize(nullptr));
    waited.store(true);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    if (variant("plain"))
        sem_post(&ready);
    expect("second", sum(second, count), 8 * count);
    reader.join();
}
