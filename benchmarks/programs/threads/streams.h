/* Threads whose work on the GPU depends on each other, or calls functions of the host. */
#pragma once

#include <atomic>

#include <semaphore.h>

#include "lane.h"
#include "queue.h"
#include "side_by_side.h"

/* Two threads enqueue in one stream. */
static void shared()
{
    const Lane lane;
    side_by_side(2, [&lane](int thread) {
        Lane own = lane;
        check(cudaMallocHost(reinterpret_cast<void **>(&own.host), 1));
        for (int number = thread; number < tasks; number += 2)
            own.task(1, thread ? 10 : 25);
    });
}

/* A thread's device memory for one task at a time: allocated and freed for each task or, when fixed, kept. */
class TaskMemory
{
  public:
    explicit TaskMemory(std::size_t most)
    {
        if (fixed)
            check(cudaMalloc(&block, most));
    }
    void *take(std::size_t size)
    {
        if (!fixed)
            check(cudaMalloc(&block, size));
        return block;
    }
    void give_back()
    {
        if (!fixed)
            check(cudaFree(block));
    }

  private:
    void *block = nullptr;
};

/* Two threads free the memory of each task, which waits, instead of waiting for it. */
static void frees()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        TaskMemory memory(1 << 16);
        for (int number = thread; number < tasks; number += 2) {
            check(cudaMemsetAsync(memory.take(1 << 16), 0, 1 << 10, lane.stream));
            lane.set(1);
            memory.give_back();
            work(thread ? 15 : 20);
            lane.fetch();
        }
    });
}

/* Of two threads, one asks again and again whether its work is done. */
static void polling()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            if (thread == 0) {
                lane.task(1, 20);
                continue;
            }
            lane.set(1);
            work(10);
            check(cudaMemcpyAsync(lane.host, lane.device, 1, cudaMemcpyDeviceToHost, lane.stream));
            while (cudaStreamQuery(lane.stream) == cudaErrorNotReady)
                ;
            total += *lane.host;
        }
    });
}

/* Two threads, whose streams also call functions of the host. */
static void callbacks()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            if (number % 16 < 2)
                check(cudaLaunchHostFunc(lane.stream, [](void *) { ++total; }, nullptr));
            lane.task(1, thread ? 12 : 22);
        }
    });
}

/* Three threads free memory of unequal sizes, which waits; the driver gives it to another of them next. */
static void recycled()
{
    side_by_side(3, [](int thread) {
        const Lane lane;
        TaskMemory memory(1 << 18);
        for (int number = thread; number < tasks; number += 3) {
            void *const block = memory.take(static_cast<std::size_t>(1 << 16) << number % 2);
            check(cudaMemsetAsync(block, 1, 1, lane.stream));
            check(cudaMemcpyAsync(lane.host, block, 1, cudaMemcpyDeviceToHost, lane.stream));
            check(cudaStreamSynchronize(lane.stream));
            total += *lane.host;
            lane.set(1);
            memory.give_back();
            work(10);
        }
    });
}

/* Two threads, of which one's stream also calls functions of the host, which only count. */
static void counted()
{
    static std::atomic<int> calls{0};
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 2) {
            lane.task(1, 15);
            if (thread == 1 && number % 20 == 1)
                check(cudaLaunchHostFunc(lane.stream, [](void *) { ++calls; }, nullptr));
        }
    });
}

/* Bytes of the host that one thread fills, and another one empties. */
struct Places {
    static constexpr int count = 4;
    unsigned char *host = nullptr;
    cudaEvent_t filled[count];
    sem_t full, empty;

    Places()
    {
        check(cudaMallocHost(reinterpret_cast<void **>(&host), count));
        for (cudaEvent_t &event : filled)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        sem_init(&full, 0, 0);
        sem_init(&empty, 0, count);
    }
};

/* One thread fetches bytes and records an event for each, and another one waits for that and reads the byte. */
static void events()
{
    Places places;
    side_by_side(2, [&places](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            const int place = number % Places::count;
            sem_wait(thread == 0 ? &places.empty : &places.full);
            if (thread == 0) {
                lane.set(1);
                check(cudaMemcpyAsync(places.host + place, lane.device, 1, cudaMemcpyDeviceToHost, lane.stream));
                check(cudaEventRecord(places.filled[place], lane.stream));
                lane.wait();
                work(15);
            } else {
                check(cudaEventSynchronize(places.filled[place]));
                total += places.host[place];
                work(20);
            }
            sem_post(thread == 0 ? &places.full : &places.empty);
        }
    });
}

/* One thread fetches bytes, and functions of the host tell another one that a byte is there. */
static void handed()
{
    Places places;
    side_by_side(2, [&places](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            const int place = number % Places::count;
            sem_wait(thread == 0 ? &places.empty : &places.full);
            if (thread == 1) {
                total += places.host[place];
                work(20);
                sem_post(&places.empty);
                continue;
            }
            lane.set(1);
            check(cudaMemcpyAsync(places.host + place, lane.device, 1, cudaMemcpyDeviceToHost, lane.stream));
            check(cudaLaunchHostFunc(
                lane.stream, [](void *full) { sem_post(static_cast<sem_t *>(full)); }, &places.full));
            lane.wait();
            work(15);
        }
        lane.fetch();
    });
}

/* One thread fills two buffers of the device in turn, and another one fetches from them; events put their work in
 * order. */
static void buffers()
{
    const Lane sides[2];
    cudaEvent_t filled[2], emptied[2];
    for (int side = 0; side < 2; ++side) {
        check(cudaEventCreateWithFlags(&filled[side], cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&emptied[side], cudaEventDisableTiming));
    }
    Queue full(2), empty(2);
    empty.put(0);
    empty.put(1);
    side_by_side(2, [&](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            const int side = (thread == 0 ? empty : full).take();
            if (thread == 0) {
                check(cudaStreamWaitEvent(lane.stream, emptied[side], 0));
                check(cudaMemsetAsync(sides[side].device, 1, bytes, lane.stream));
                check(cudaEventRecord(filled[side], lane.stream));
                lane.wait();
                work(15);
                full.put(side);
            } else {
                check(cudaStreamWaitEvent(lane.stream, filled[side], 0));
                check(cudaMemcpyAsync(lane.host, sides[side].device, 1, cudaMemcpyDeviceToHost, lane.stream));
                check(cudaEventRecord(emptied[side], lane.stream));
                check(cudaStreamSynchronize(lane.stream));
                total += *lane.host;
                work(10);
                empty.put(side);
            }
        }
    });
}
