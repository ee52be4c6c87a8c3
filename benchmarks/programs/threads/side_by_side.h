/* Several threads at once. */
#pragma once

#include <functional>
#include <thread>
#include <vector>

/* Runs a function of a number in so many threads, and waits for them. */
static inline void side_by_side(int count, const std::function<void(int)> &run)
{
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number)
        threads.emplace_back(run, number);
    for (std::thread &thread : threads)
        thread.join();
}
