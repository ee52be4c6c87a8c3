/* threads KIND own|legacy TASKS [fixed]: threads with tasks for the GPU, which depend on each other in a way that KIND
 * names. Each task sets memory of the GPU, waits for that, works on the CPU and fetches a byte, or with `fixed` does so
 * without the wait. All threads have streams of their own, or all use the legacy default stream. Prints the sum of the
 * numbers. */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <semaphore.h>

#include "runtime.h"

/* So many bytes as the virtual GPU is told to take long to set. */
static constexpr std::size_t bytes = 4096;

static bool legacy = false, fixed = false;
static int tasks = 0;
static std::atomic<long> total{0};

/* Reads no clock: a wait before that would count as one for timing. */
__attribute__((noinline, aligned(64))) static void work(int thousands)
{
    volatile int left = thousands * 1000;
    while (left > 0)
        left = left - 1;
}

/* What a thread uses of the GPU. */
struct Lane {
    unsigned char *device = nullptr, *host = nullptr;
    cudaStream_t stream = nullptr;

    Lane()
    {
        if (!legacy)
            check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        check(cudaMalloc(reinterpret_cast<void **>(&device), bytes));
        check(cudaMallocHost(reinterpret_cast<void **>(&host), 1));
    }

    void set(int times) const
    {
        for (int number = 0; number < times; ++number)
            check(cudaMemsetAsync(device, 1, bytes, stream));
    }

    void wait() const
    {
        if (fixed)
            return;
        check(legacy ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream));
    }

    void fetch() const
    {
        check(cudaMemcpyAsync(host, device, 1, cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        total += *host;
    }

    /* A task with the wait that is not needed, and one without. */
    void task(int sets, int thousands) const
    {
        set(sets);
        wait();
        work(thousands);
        fetch();
    }
    void plain(int sets, int thousands) const
    {
        set(sets);
        work(thousands);
        fetch();
    }
};

/* Runs a function of a number in so many threads, and waits for them. */
static void side_by_side(int count, const std::function<void(int)> &run)
{
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number)
        threads.emplace_back(run, number);
    for (std::thread &thread : threads)
        thread.join();
}

/* A queue that holds so many numbers. */
class Queue
{
  public:
    explicit Queue(std::size_t room) : room_(room) {}

    void put(int number)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return numbers_.size() < room_; });
        numbers_.push_back(number);
        changed_.notify_all();
    }

    int take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !numbers_.empty(); });
        const int number = numbers_.front();
        numbers_.pop_front();
        changed_.notify_all();
        return number;
    }

  private:
    std::size_t room_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<int> numbers_;
};

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

/* Three threads have nothing to do with each other. */
static void apart()
{
    side_by_side(3, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 3)
            lane.task(1, 15 + 5 * thread);
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

/* Three threads, each of which takes what the one before it makes; the middle one has the wait. */
static void chain()
{
    Queue first(3), second(3);
    side_by_side(3, [&first, &second](int thread) {
        const Lane lane;
        for (int number = 0; number < tasks; ++number) {
            if (thread == 0) {
                lane.plain(1, 5);
                first.put(number);
            } else if (thread == 1) {
                first.take();
                lane.task(2, 20);
                second.put(number);
            } else {
                second.take();
                work(10);
            }
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

/* One thread has three times as many tasks as the other one. */
static void uneven()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        for (int number = 0; number < (thread ? tasks / 4 : tasks * 3 / 4); ++number)
            lane.task(1, thread ? 30 : 15);
    });
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

/* Two threads free the memory of each task, which waits, instead of waiting for it. */
static void frees()
{
    side_by_side(2, [](int thread) {
        const Lane lane;
        void *kept = nullptr;
        if (fixed)
            check(cudaMalloc(&kept, 1 << 16));
        for (int number = thread; number < tasks; number += 2) {
            void *block = kept;
            if (!fixed)
                check(cudaMalloc(&block, 1 << 16));
            check(cudaMemsetAsync(block, 0, 1 << 10, lane.stream));
            lane.set(1);
            if (!fixed)
                check(cudaFree(block));
            work(thread ? 15 : 20);
            lane.fetch();
        }
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

/* Four threads have nothing to do with each other, and tasks that take unequally long. */
static void four()
{
    side_by_side(4, [](int thread) {
        const Lane lane;
        for (int number = thread; number < tasks; number += 4)
            lane.task(1 + number % 2, 8 * (thread + 1));
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

static const std::map<std::string, void (*)()> kinds = {
    {"pool", pool},           {"pipeline", pipeline}, {"barrier", barrier}, {"joined", joined},
    {"mutex", mutex},         {"shared", shared},     {"apart", apart},     {"ring", ring},
    {"chain", chain},         {"leader", leader},     {"uneven", uneven},   {"promised", promised},
    {"readers", readers},     {"frees", frees},       {"workers", workers}, {"makers", makers},
    {"beside", beside},       {"four", four},         {"mixed", mixed},     {"polling", polling},
    {"callbacks", callbacks}, {"sections", sections}, {"futures", futures}, {"halfway", halfway},
    {"spinning", spinning},   {"bursts", bursts},     {"heavy", heavy},
};

int main(int count, char **words)
{
    const auto kind = count < 4 ? kinds.end() : kinds.find(words[1]);
    if (kind == kinds.end()) {
        std::fprintf(stderr, "usage: threads KIND own|legacy TASKS [fixed]\n");
        return 1;
    }
    legacy = std::string(words[2]) == "legacy";
    tasks = std::atoi(words[3]);
    fixed = count > 4;
    kind->second();
    std::printf("%ld\n", total.load());
}
