// The program reads a clock once, or twice with nothing in between, or around an array only; or the first thread times
// what a second one does, and waits for; or a function that the GPU does not concern reads it in between.
// variants: once, together, around, joined, another
#include "planted.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

static double seconds(Clock::duration time)
{
    return std::chrono::duration<double>(time).count();
}

static void one_read(int *device)
{
    fill(device, 1, 7);
    WAIT(stamped, cudaDeviceSynchronize()); // sync: once, together unnecessary, around, joined, another absent
    const Clock::time_point stamp = Clock::now();
    if (variant("together"))
        expect("an hour", Clock::now() - stamp < std::chrono::hours(1), 1);
    expect("a stamp", stamp.time_since_epoch().count() != 0, 1);
}

static void time_the_cpu(int *device)
{
    fill(device, 1, 7);
    WAIT(spare, cudaDeviceSynchronize()); // sync: around unnecessary, once, together, joined, another absent
    std::vector<int> numbers(1000, 1);
    double fastest = 1e9;
    for (int round = 0; round < 3; round++) {
        const Clock::time_point start = Clock::now();
        expect("total", sum(numbers.data(), 1000), 1000);
        fastest = std::min(fastest, seconds(Clock::now() - start));
    }
    expect("the CPU's time", fastest < 0.02 || !planted::proving(), 1);
}

static void time_a_thread(int *device)
{
    const Clock::time_point start = Clock::now();
    std::thread second([device] {
        fill(device, 1, 7);
        WAIT(timed, cudaDeviceSynchronize()); // sync: joined required, once, together, around, another absent
    });
    second.join();
    expect("it was waited for", seconds(Clock::now() - start) > 0.03 || !planted::proving(), 1);
}

static void time_each_of_two(int *device)
{
    double fastest = 1e9; // of some rounds: other programs may delay one
    for (int round = 0; round < 3; round++) {
        fill(device, 1, 7);
        WAIT(first, cudaDeviceSynchronize()); // sync: another required, once, together, around, joined absent
        const Clock::time_point start = Clock::now();
        add_slowly(device + 1, device, 1);
        WAIT(second, cudaDeviceSynchronize()); // sync: another required, once, together, around, joined absent
        fastest = std::min(fastest, seconds(Clock::now() - start));
    }
    expect("only the second", (fastest > 0.008 && fastest < 0.035) || !planted::proving(), 1);
}

void program()
{
    int *device = device_integers(2);
    if (variant("around"))
        time_the_cpu(device);
    else if (variant("joined"))
        time_a_thread(device);
    else if (variant("another"))
        time_each_of_two(device);
    else
        one_read(device);
}
