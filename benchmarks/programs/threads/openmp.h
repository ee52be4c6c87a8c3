/* Threads of OpenMP. */
#pragma once

#include <omp.h>

#include "lane.h"

/* Two threads share a loop of tasks that take unequally long, round by round. */
static void omp_for()
{
    const Lane lanes[2];
    for (int round = 0; round < tasks; round += 24) {
#pragma omp parallel for num_threads(2) schedule(dynamic)
        for (int number = round; number < round + 24; ++number)
            lanes[omp_get_thread_num()].task(1, 10 + number % 3 * 5);
    }
}

/* Rounds of two different jobs, each for a thread of its own. */
static void omp_sections()
{
    const Lane lanes[2];
    for (int round = 0; round < tasks; round += 20) {
#pragma omp parallel sections num_threads(2)
        {
#pragma omp section
            for (int part = 0; part < 12; ++part)
                lanes[omp_get_thread_num()].task(1, 10);
#pragma omp section
            for (int part = 0; part < 8; ++part)
                lanes[omp_get_thread_num()].plain(1, 20);
        }
    }
}

/* One of three threads makes tasks for all, and waits for them, round by round. */
static void omp_tasks()
{
    const Lane lanes[3];
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int round = 0; round < tasks; round += 30) {
        for (int number = round; number < round + 30; ++number) {
#pragma omp task firstprivate(number)
            lanes[omp_get_thread_num()].task(1, 8 + number % 4 * 4);
        }
#pragma omp taskwait
    }
}
