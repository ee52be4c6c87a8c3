/* Threads that hand each other tasks by queues. */
#pragma once

#include <deque>
#include <mutex>

#include "lane.h"
#include "queue.h"
#include "side_by_side.h"

/* Two threads take tasks from a queue. */
static void pool()
{
    Queue queue(static_cast<std::size_t>(tasks) + 2);
    for (int number = 0; number < tasks; ++number)
        queue.put(number);
    queue.put(-1);
    queue.put(-1);
    side_by_side(2, [&queue](int) {
        const Lane lane;
        for (int number = queue.take(); number >= 0; number = queue.take())
            lane.task(1, 10 + number * 37 % 20);
    });
}

/* Four threads take small tasks from a queue. */
static void workers()
{
    Queue queue(static_cast<std::size_t>(tasks) + 4);
    for (int number = 0; number < tasks; ++number)
        queue.put(number);
    for (int thread = 0; thread < 4; ++thread)
        queue.put(-1);
    side_by_side(4, [&queue](int) {
        const Lane lane;
        for (int number = queue.take(); number >= 0; number = queue.take())
            lane.task(1, 3 + number * 11 % 7);
    });
}

/* One thread makes what the other one takes. */
static void pipeline()
{
    Queue queue(4);
    side_by_side(2, [&queue](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            if (thread == 0) {
                lane.task(1, 20);
                queue.put(number);
            } else {
                queue.take();
                lane.plain(1, 10);
            }
        }
    });
}

/* What a thread of a line does with each number. */
using Step = void (*)(const Lane &);

/* Three threads, each of which takes what the one before it makes, by queues with so much room. */
static void in_line(std::size_t room, Step first, Step middle, Step last)
{
    Queue made(room), finished(room);
    side_by_side(3, [&made, &finished, first, middle, last](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            if (thread == 0) {
                first(lane);
                made.put(number);
            } else if (thread == 1) {
                made.take();
                middle(lane);
                finished.put(number);
            } else {
                finished.take();
                last(lane);
            }
        }
    });
}

/* Three threads in line, of which the middle one has the wait. */
static void chain()
{
    in_line(
        3, [](const Lane &lane) { lane.plain(1, 5); }, [](const Lane &lane) { lane.task(2, 20); },
        [](const Lane &) { work(10); });
}

/* Two threads, of which one works longer, make what a third one takes. */
static void makers()
{
    Queue queue(6);
    side_by_side(3, [&queue](int thread) {
        const Lane lane;
        if (thread == 2) {
            for (int number = 0; number < tasks; ++number) {
                queue.take();
                work(5);
            }
            return;
        }
        for (int number = thread; number < tasks; number += 2) {
            lane.task(1, thread ? 30 : 8);
            queue.put(number);
        }
    });
}

/* Two threads make what two others take, and wait where the queue is full. */
static void market()
{
    Queue queue(4);
    side_by_side(4, [&queue](int thread) {
        const Lane lane;
        for (int number = thread / 2; number < tasks; number += 2) {
            if (thread % 2 == 0) {
                lane.task(1, thread ? 20 : 10);
                queue.put(number);
            } else {
                queue.take();
                lane.plain(1, 5);
            }
        }
    });
}

/* Three threads in line, of which the middle one takes longest, and the last one has the wait. */
static void stages()
{
    in_line(
        4, [](const Lane &lane) { lane.plain(1, 5); }, [](const Lane &lane) { lane.plain(1, 60); },
        [](const Lane &lane) { lane.task(1, 5); });
}

/* Two threads have queues of their own, unequally long, and take from the other's end when theirs is empty. */
static void stealing()
{
    struct Own {
        std::mutex mutex;
        std::deque<int> numbers;
    } own[2];
    for (int number = 0; number < tasks; ++number)
        own[number % 4 == 0].numbers.push_back(number);
    const auto take = [&own](int thread) {
        for (int tried = 0; tried < 2; ++tried) {
            Own &from = own[(thread + tried) % 2];
            const std::lock_guard<std::mutex> lock(from.mutex);
            if (from.numbers.empty())
                continue;
            const int number = tried ? from.numbers.front() : from.numbers.back();
            tried ? from.numbers.pop_front() : from.numbers.pop_back();
            return number;
        }
        return -1;
    };
    side_by_side(2, [&take](int thread) {
        const Lane lane;
        for (int number = take(thread); number >= 0; number = take(thread))
            lane.task(1, 10 + number * 13 % 20);
    });
}
