/* Threads of which one at a time may go on: by locks, semaphores, or a number that they look at. */
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <shared_mutex>

#include <pthread.h>
#include <semaphore.h>

#include "lane.h"
#include "side_by_side.h"

/* Two threads have a mutex for most of a task. */
static void mutex()
{
    std::mutex turn;
    side_by_side(2, [&turn](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            turn.lock();
            lane.task(1, 20);
            turn.unlock();
            lane.plain(1, thread ? 5 : 15);
        }
    });
}

/* Two threads read together what one of them sometimes changes alone. */
static void readers()
{
    std::shared_mutex data;
    side_by_side(2, [&data](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            if (number % 8 == 0) {
                std::unique_lock<std::shared_mutex> lock(data);
                lane.task(2, 20);
            } else {
                std::shared_lock<std::shared_mutex> lock(data);
                lane.task(1, 15);
            }
            work(5);
        }
    });
}

/* Three threads hand a turn on by semaphores. */
static void ring()
{
    sem_t turns[3];
    for (int place = 0; place < 3; ++place)
        sem_init(&turns[place], 0, place == 0);
    side_by_side(3, [&turns](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3) {
            sem_wait(&turns[thread]);
            if (thread == 1)
                lane.plain(2, 10);
            else
                lane.task(1, 15);
            sem_post(&turns[(thread + 1) % 3]);
        }
    });
}

/* Two threads hand a turn on by a number that they look at again and again. */
static void spinning()
{
    std::atomic<int> turn{0};
    side_by_side(2, [&turn](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            lane.plain(1, 5);
            while (turn.load() != number)
                ;
            lane.task(1, 15);
            turn = number + 1;
        }
    });
}

/* Of three threads, two at a time have a slot for a task. */
static void slots()
{
    sem_t free_slots;
    sem_init(&free_slots, 0, 2);
    side_by_side(3, [&free_slots](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3) {
            sem_wait(&free_slots);
            lane.task(1, 15);
            sem_post(&free_slots);
            work(5);
        }
    });
}

/* Two threads read together what a third one changes alone. */
static void rwlock()
{
    pthread_rwlock_t data;
    pthread_rwlock_init(&data, nullptr);
    side_by_side(3, [&data](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3) {
            if (thread == 2)
                pthread_rwlock_wrlock(&data);
            else
                pthread_rwlock_rdlock(&data);
            lane.task(1, thread == 2 ? 20 : 10);
            pthread_rwlock_unlock(&data);
            work(10);
        }
    });
}

/* Whichever of two threads comes first to a round prepares it, and the other one waits for that. */
static void once()
{
    std::deque<std::once_flag> prepared(static_cast<std::size_t>(tasks) / 10 + 1);
    side_by_side(2, [&prepared](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            std::call_once(prepared[static_cast<std::size_t>(number) / 10], [] { work(60); });
            lane.task(1, 15);
        }
    });
}
