/* Threads that are started for a part of the work, and that others wait for. */
#pragma once

#include <future>
#include <thread>
#include <vector>

#include "lane.h"
#include "side_by_side.h"

/* A thread is started and joined for every few tasks. */
static void joined()
{
    const Lane lane, other;
    for (int number = 0; number < tasks; number += 8) {
        std::thread thread([&other] {
            for (int part = 0; part < 5; ++part)
                other.task(1, 15);
        });
        for (int part = 0; part < 3; ++part)
            lane.plain(1, 10);
        thread.join();
    }
}

/* Rounds of three different jobs, each for a thread of its own. */
static void sections()
{
    const Lane first, second, third;
    for (int number = 0; number < tasks; number += 30) {
        side_by_side(3, [&](int thread) {
            for (int part = 0; part < (thread == 2 ? 6 : 12); ++part) {
                if (thread == 0)
                    first.task(1, 15);
                else if (thread == 1)
                    second.plain(1, 10);
                else
                    third.task(2, 25);
            }
        });
    }
}

/* A thread for each part of a round gives its number back by a future. */
static void promised()
{
    const Lane lane, other;
    for (int number = 0; number < tasks; number += 6) {
        std::future<int> found = std::async(std::launch::async, [&other] {
            for (int part = 0; part < 3; ++part)
                other.task(1, 15);
            return static_cast<int>(*other.host);
        });
        for (int part = 0; part < 3; ++part)
            lane.task(1, 10);
        total += found.get();
    }
}

/* Futures of which two are always under way. */
static void futures()
{
    const Lane lanes[2];
    std::future<void> under_way[2];
    for (int number = 0; number < tasks; number += 25) {
        const int place = number / 25 % 2;
        if (under_way[place].valid())
            under_way[place].get();
        under_way[place] = std::async(std::launch::async, [lane = &lanes[place]] {
            for (int part = 0; part < 25; ++part)
                lane->task(1, 10 + part % 3 * 5);
        });
    }
    for (std::future<void> &one : under_way)
        if (one.valid())
            one.get();
}

/* Three futures of a round, whose numbers are added in turn. */
static void gathered()
{
    const Lane lanes[3];
    for (int number = 0; number < tasks; number += 12) {
        std::vector<std::future<long>> found;
        for (const Lane &lane : lanes)
            found.push_back(std::async(std::launch::async, [&lane] {
                for (int part = 0; part < 4; ++part)
                    lane.task(1, 12);
                return static_cast<long>(*lane.host);
            }));
        for (std::future<long> &one : found)
            total += one.get();
    }
}
