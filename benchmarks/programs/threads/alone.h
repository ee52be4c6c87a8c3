/* Threads that do not wait for each other, but may share processors. */
#pragma once

#include <chrono>
#include <thread>

#include "lane.h"
#include "side_by_side.h"

/* Three threads have nothing to do with each other. */
static void apart()
{
    side_by_side(3, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3)
            lane.task(1, 15 + 5 * thread);
    });
}

/* One thread has three times as many tasks as the other one. */
static void uneven()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = 0; number < (thread ? tasks / 4 : tasks * 3 / 4); ++number)
            lane.task(1, thread ? 30 : 15);
    });
}

/* Four threads have nothing to do with each other, and tasks that take unequally long. */
static void four()
{
    side_by_side(4, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 4)
            lane.task(1 + number % 2, 8 * (thread + 1));
    });
}

/* Of three threads, only one waits needlessly. */
static void mixed()
{
    side_by_side(3, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3) {
            if (thread == 1)
                lane.task(1, 25);
            else
                lane.plain(1, 15);
        }
    });
}

/* Two threads, of which one only works on the CPU between tasks without waits. */
static void heavy()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            if (thread == 0)
                lane.task(1, 15);
            else
                lane.plain(1, 90);
        }
    });
}

/* One thread has all tasks, and another one only works on the CPU. */
static void beside()
{
    side_by_side(2, [](int thread) {
        if (thread == 1) {
            work(tasks * 60);
            return;
        }
        const Lane lane;
        for (int number = 0; number < tasks; ++number)
            lane.task(1, 20);
    });
}

/* The second thread comes when the first one has done half of its tasks. */
static void halfway()
{
    std::thread second;
    const auto run = [](int count, int thousands) {
        const Lane lane;
        for (int number = 0; number < count; ++number)
            lane.task(1, thousands);
    };
    run(tasks / 4, 15);
    second = std::thread(run, tasks / 2, 20);
    run(tasks / 4, 15);
    second.join();
}

/* Three threads work in bursts, and sleep between them. */
static void bursts()
{
    side_by_side(3, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3) {
            lane.task(1, 10 + 5 * thread);
            if (number % 150 < 3)
                std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    });
}
