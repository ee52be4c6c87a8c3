// A thread waits twice for a download and looks at it often. Another one sleeps in a system call meanwhile: for the
// whole run, perhaps while a child is started; or until it is woken, a time is over, or a signal comes, and then it
// reads. It relies on the first wait, unless all of that came after the second. The program asks for a memory
// protection key, as if there were none for ffm, which they would spare the trouble (spinning_threads.cu).
// variants: idle, spawn, handed, given, told, timeout, nap, poll, pipe, signal, late
#include "planted.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <thread>

constexpr int count = 1024, looks = 16; // more than are stepped over
constexpr size_t bytes = count * sizeof(int);

static std::mutex lock;
static std::condition_variable changed;
static std::atomic<bool> set{false}, over{false};
static std::atomic<pid_t> number{0}; // of the other thread, once it is about to sleep
static int ends[2];                  // of a pipe
static const int *shared;

/* Later than what the other thread does meanwhile, which nothing but time sees to. */
static std::chrono::milliseconds later()
{
    return std::chrono::milliseconds(planted::proving() ? 1 : std::getenv("VGPU_CONFIGURATION") ? 900 : 60);
}

static void read_shared()
{
    expect("other", sum(shared, count), 7 * count);
}

static void handle(int)
{
    if (variant("signal") && !planted::proving())
        std::this_thread::sleep_for(later());
    read_shared();
    over = true;
}

static bool wakes_by_time()
{
    return variant("timeout") || variant("nap") || variant("poll");
}

static void sleep_until_set()
{
    std::unique_lock<std::mutex> held(lock);
    number = gettid();
    if (!wakes_by_time()) {
        changed.wait(held, [] { return set.load(); });
        return;
    }
    while (!set) {
        if (variant("timeout")) {
            changed.wait_for(held, later());
        } else if (variant("nap")) {
            std::this_thread::sleep_for(later());
        } else {
            pollfd watched{ends[0], POLLIN, 0};
            poll(&watched, 1, static_cast<int>(later().count()));
        }
    }
}

static void other_thread()
{
    char byte;
    if (variant("pipe")) {
        number = gettid();
        expect("byte", read(ends[0], &byte, 1), 1);
    } else {
        sleep_until_set();
    }
    if (variant("idle") || variant("spawn") || variant("signal") || variant("late"))
        return;
    if (!planted::proving() && (variant("handed") || variant("pipe")))
        std::this_thread::sleep_for(later());
    read_shared();
}

static void wake()
{
    {
        std::lock_guard<std::mutex> held(lock);
        set = true;
    }
    changed.notify_all();
}

/* Whether the other thread sleeps, as the kernel says. */
static bool sleeps()
{
    if (number == 0)
        return false;
    char state = 0;
    const std::string path = "/proc/self/task/" + std::to_string(number) + "/stat";
    std::FILE *told = std::fopen(path.c_str(), "r");
    const bool read = told != nullptr && std::fscanf(told, "%*d (%*[^)]) %c", &state) == 1;
    if (told != nullptr)
        std::fclose(told);
    return read && state == 'S';
}

/* What the first wait is for is there. */
static void after_first(std::thread &other)
{
    if (variant("handed"))
        wake();
    else if (variant("told") || wakes_by_time())
        set = true; // who sleeps learns of it later
    else if (variant("pipe"))
        expect("written", write(ends[1], "", 1), 1);
    else if (variant("signal"))
        pthread_kill(other.native_handle(), SIGUSR1);
}

void program()
{
    pkey_alloc(0, 0); // fails where there are none
    std::signal(SIGUSR1, handle);
    int *host = pinned_integers(count), *second = pinned_integers(count), *device = device_integers(2 * count);
    shared = host;
    expect("pipe", pipe(ends), 0);
    expect("handler", std::signal(SIGUSR1, handle) == handle, true);
    std::thread other(other_thread);
    while (!sleeps())
        std::this_thread::yield();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: required, idle, spawn conditionally unnecessary (keep both), given, told, late required (undecidable)
    WAIT(first, cudaStreamSynchronize(nullptr));
    after_first(other);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(both, cudaStreamSynchronize(nullptr)); // sync: required
    if (variant("spawn"))
        expect("child", std::system("true"), 0);
    for (int look = 0; look < looks; ++look)
        expect("own", sum(host, count), 7 * count);
    expect("second", sum(second, count), 8 * count);
    if (variant("late"))
        pthread_kill(other.native_handle(), SIGUSR1);
    while ((variant("late") || variant("signal")) && !over)
        ; // makes no system call
    wake();
    other.join();
}
