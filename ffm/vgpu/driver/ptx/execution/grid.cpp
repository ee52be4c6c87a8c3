#include "grid.h"

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <functional>
#include <list>
#include <pthread.h>
#include <sys/prctl.h>
#include <thread>

#include "addresses.h"
#include "block_run.h"
#include "foundation/clock.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::size_t resident_blocks = 132 * 32;

/* The number of processors. It is remembered, because the C library reads a file whenever it is asked. */
std::size_t processors()
{
    static const std::size_t count = std::max(1u, std::thread::hardware_concurrency());
    return count;
}

/* The calling thread's pool of stacks. The thread keeps it, since its pages are already there. Stacks of coroutines
 * also hold the block's frames. */
StackPool &stack_pool(const Code &code, const LaunchShape &shape)
{
    static thread_local std::unique_ptr<StackPool> of_fibers, of_coroutines;
    bool coroutines = code.schedule == Schedule::coroutines || code.schedule == Schedule::regions;
    std::unique_ptr<StackPool> &pool = coroutines ? of_coroutines : of_fibers;
    std::size_t threads = std::size_t{shape.block[0]} * shape.block[1] * shape.block[2];
    std::size_t frames = code.schedule == Schedule::regions ? (threads + warp_size - 1) / warp_size
                         : coroutines                       ? threads
                                                            : 0;
    std::size_t size = stack_size(code, shape) + rounded_stack(frames * code.frame_stride());
    if (!pool || pool->size() < size)
        pool = std::make_unique<StackPool>(size);
    return *pool;
}

/* Runs one host thread's share of a launch. A block that only waits for others is set aside while they run. */
void run_blocks(Launch &launch)
{
    forget_addresses();
    StackPool &stacks = stack_pool(launch.code, launch.shape);
    std::list<BlockRun> resident;
    auto current = resident.end();
    while (!launch.stop) {
        bool room = resident.size() < resident_blocks;
        if (current == resident.end() && room) {
            std::uint64_t number = launch.next_block.fetch_add(1);
            if (number < launch.block_count) {
                resident.emplace_back(launch, stacks, number);
                current = std::prev(resident.end());
            }
        }
        if (current == resident.end()) {
            if (resident.empty())
                return;
            current = resident.begin();
        }
        switch (current->run()) {
        case BlockRun::Outcome::failed:
            return;
        case BlockRun::Outcome::finished:
            current = resident.erase(current);
            break;
        case BlockRun::Outcome::stalled:
            std::this_thread::yield();
            ++current;
            break;
        }
    }
}

/* Threads that help with launches. They live as long as the process. */
class Crew
{
  public:
    /* Runs `work` on the calling thread and on up to `helpers` others. Returns when all have finished. */
    void run(const std::function<void()> &work, std::size_t helpers)
    {
        Task task{&work, helpers, 0};
        if (helpers > 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(&task);
            while (threads_ < processors() - 1)
                add_thread();
        }
        available_.notify_all();
        work();
        std::unique_lock<std::mutex> lock(mutex_);
        tasks_.remove(&task);
        left_.wait(lock, [&task] { return task.inside == 0; });
    }

  private:
    struct Task {
        const std::function<void()> *work;
        std::size_t wanted; /* how many more helpers may join */
        int inside;
    };

    void add_thread()
    {
        sigset_t blocked, previous;
        sigfillset(&blocked);
        for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&blocked, fault);
        pthread_sigmask(SIG_SETMASK, &blocked, &previous);
        std::thread([this] { help(); }).detach();
        pthread_sigmask(SIG_SETMASK, &previous, nullptr);
        ++threads_;
    }

    void help()
    {
        pthread_setname_np(pthread_self(), "vgpu-multiproc");
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            available_.wait(lock, [this] { return !tasks_.empty(); });
            Task *task = tasks_.front();
            if (--task->wanted == 0)
                tasks_.remove(task);
            ++task->inside;
            lock.unlock();
            (*task->work)();
            lock.lock();
            --task->inside;
            left_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable available_, left_;
    std::list<Task *> tasks_;
    std::size_t threads_ = 0;
};

/* Ends a launch when one of its threads has worked on it for too long. It uses that thread's own clock, so that a
 * busy machine ends no launch. */
class Watch
{
  public:
    void add(Launch &launch, double seconds)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ends_.push_back({&launch, static_cast<Nanoseconds>(seconds * 1e9), seconds, {}});
        if (!started_) {
            sigset_t all, previous;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &previous);
            std::thread([this] { look(); }).detach();
            pthread_sigmask(SIG_SETMASK, &previous, nullptr);
            started_ = true;
        }
        if (idle_)
            changed_.notify_one();
    }

    /* The calling thread starts to work on a launch that was added, or has stopped. */
    void enter(const Launch &launch)
    {
        clockid_t clock;
        pthread_getcpuclockid(pthread_self(), &clock);
        std::lock_guard<std::mutex> lock(mutex_);
        for (End &end : ends_)
            if (end.launch == &launch)
                end.working.push_back({pthread_self(), clock, time_of(clock)});
    }

    void leave(const Launch &launch)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        for (End &end : ends_)
            if (end.launch == &launch)
                end.working.remove_if([](const Working &one) { return pthread_equal(one.thread, pthread_self()); });
    }

    void remove(const Launch &launch)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ends_.remove_if([&launch](const End &end) { return end.launch == &launch; });
    }

  private:
    struct Working {
        pthread_t thread;
        clockid_t clock;
        Nanoseconds since; /* by the thread's clock */
    };

    struct End {
        Launch *launch;
        Nanoseconds limit;
        double seconds;
        std::list<Working> working;

        Nanoseconds left() const
        {
            Nanoseconds most = 0;
            for (const Working &one : working)
                most = std::max(most, time_of(one.clock) - one.since);
            return limit - most;
        }
    };

    static Nanoseconds time_of(clockid_t clock)
    {
        timespec time;
        clock_gettime(clock, &time);
        return Nanoseconds{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }

    void look()
    {
        pthread_setname_np(pthread_self(), "vgpu-watch");
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            idle_ = true;
            changed_.wait(lock, [this] { return !ends_.empty(); });
            idle_ = false;
            Nanoseconds first = ends_.front().limit;
            for (auto end = ends_.begin(); end != ends_.end();) {
                Nanoseconds left = end->left();
                if (left > 0) {
                    first = std::min(first, left);
                    ++end;
                    continue;
                }
                char text[80];
                std::snprintf(text, sizeof text, "not over after %g seconds (device.time_limit)", end->seconds);
                end->launch->fail(Fault::time, text);
                end = ends_.erase(end);
            }
            /* All launches have the same limit, so one that is added during the sleep cannot end before these. */
            lock.unlock();
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::max(first, shortest_look)));
            lock.lock();
        }
    }

    static constexpr Nanoseconds shortest_look = 1'000'000;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<End> ends_;
    bool started_ = false;
    bool idle_ = false; /* the watching thread is waiting for a launch */
};

/* Never destroyed: the threads outlive the program's destructors. */
Crew &crew()
{
    static Crew *instance = new Crew;
    return *instance;
}

Watch &watch()
{
    static Watch *instance = new Watch;
    return *instance;
}

} // namespace

CUresult run(const Code &code, const LaunchShape &shape, const Arguments &arguments, double time_limit,
             std::string &printed)
{
    Launch launch(code, shape, arguments);
    if (time_limit > 0)
        watch().add(launch, time_limit);
    std::size_t helpers = std::min<std::uint64_t>(processors(), launch.block_count) - 1;
    auto work = [&launch, time_limit] {
        if (time_limit > 0)
            watch().enter(launch);
        run_blocks(launch);
        if (time_limit > 0)
            watch().leave(launch);
    };
    crew().run(work, helpers);
    if (time_limit > 0)
        watch().remove(launch);
    printed = launch.printed();
    return launch.result();
}

} // namespace vgpu::ptx
