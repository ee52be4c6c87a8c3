/* Threads that meet after each part of their work. */
#pragma once

#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>

#include <pthread.h>

#include "lane.h"
#include "side_by_side.h"

/* Two threads meet after each task; only one of them has a wait in it. */
static void barrier()
{
    pthread_barrier_t both;
    pthread_barrier_init(&both, nullptr, 2);
    side_by_side(2, [&both](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            if (thread == number % 2)
                lane.task(1, 20);
            else
                lane.plain(1, 10);
            pthread_barrier_wait(&both);
        }
    });
}

/* The first thread prepares, both do a part, and both meet again. */
static void leader()
{
    pthread_barrier_t both;
    pthread_barrier_init(&both, nullptr, 2);
    side_by_side(2, [&both](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; number += 3) {
            if (thread == 0)
                lane.task(2, 25);
            pthread_barrier_wait(&both);
            lane.plain(1, 20);
            pthread_barrier_wait(&both);
        }
    });
}

/* Threads wait until it is their turn to go on, all at once. */
class Rounds
{
  public:
    void open()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++opened_;
        changed_.notify_all();
    }
    void wait_for(int round)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this, round] { return opened_ >= round; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int opened_ = 0;
};

/* A thread lets two others begin each round together, and then prepares the next one. */
static void broadcast()
{
    Rounds rounds;
    side_by_side(3, [&rounds](int thread) {
        const Lane lane;
        for (int round = 1; round <= tasks / 6; ++round) {
            if (thread == 0) {
                lane.task(2, 30);
                rounds.open();
                continue;
            }
            rounds.wait_for(round);
            for (int part = 0; part < 2; ++part)
                lane.plain(1, 10);
        }
    });
}

/* Three threads each do a part of a round, and a fourth one goes on when all have counted down. */
static void latch()
{
    const int rounds = tasks / 9;
    std::deque<std::latch> begun, done;
    for (int round = 0; round < rounds; ++round) {
        begun.emplace_back(1);
        done.emplace_back(3);
    }
    side_by_side(4, [&begun, &done, rounds](int thread) {
        const Lane lane;
        for (int round = 0; round < rounds; ++round) {
            const auto place = static_cast<std::size_t>(round);
            if (thread == 3) {
                begun[place].count_down();
                done[place].wait();
                work(10);
                continue;
            }
            begun[place].wait();
            for (int part = 0; part < 3; ++part)
                lane.task(1, 5 + 5 * thread);
            done[place].count_down();
        }
    });
}
