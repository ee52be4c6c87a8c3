/* timed_downloads HOW USE TURNS [WORK]: downloads what each of its kernels counted, and says whether all of their time
 * passed between two reads of a clock, and what it downloaded. USE says when it looks at that: `before` or `after` the
 * second read, `never`, or `alone`: before, and the clock is read for something else. WORK is how much the CPU does
 * after each download. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

#include "clocks.h"
#include "scene.h"

/* Lasts half a millisecond by configuration. */
__global__ void count_up(int *to)
{
    if (threadIdx.x == 0)
        to[0] += 1;
}
PORTABLE_KERNEL(count_up);

namespace
{

constexpr double kernel_s = 0.0005;
constexpr std::size_t page = 4096, room = 256 * page; /* so large that no others are beside it */

volatile unsigned long sink;
int steps = 100000;

/* Some work of the CPU between two downloads, without a look at a clock. */
void work()
{
    for (int i = 0; i < steps; i++)
        sink = sink + 1;
}

/* A thread that uses the driver too, and reads a clock when told to. */
class Reader
{
  public:
    Reader() : thread_([this] { run(); })
    {
        while (!ready_)
            std::this_thread::yield();
    }
    ~Reader()
    {
        over_ = true;
        thread_.join();
    }
    /* Returns when it is about to read. */
    void begin()
    {
        begun_ = done_ = false;
        asked_ = true;
        while (!begun_)
            std::this_thread::yield();
    }
    double read()
    {
        begin();
        while (!done_)
            std::this_thread::yield();
        return seconds_;
    }

  private:
    void run()
    {
        REQUIRE(cudaFree(on_device(page)));
        ready_ = true;
        while (!over_) {
            if (!asked_.exchange(false)) {
                std::this_thread::yield();
                continue;
            }
            begun_ = true;
            seconds_ = now("clock_gettime");
            done_ = true;
        }
    }

    std::atomic<bool> ready_{false}, asked_{false}, begun_{false}, done_{false}, over_{false};
    std::atomic<double> seconds_{0};
    std::thread thread_;
};

int sum_of(const char *results, int turns)
{
    int sum = 0;
    for (int turn = 0; turn < turns; turn++)
        sum += *reinterpret_cast<const int *>(results + static_cast<std::size_t>(turn) * page);
    return sum;
}

void say_time(double passed_s, int turns)
{
    std::printf("%s\n", passed_s >= turns * kernel_s ? "all kernels" : "less than all kernels");
}

void count_and_download(int *counter, char *results, int turns)
{
    for (int turn = 0; turn < turns; turn++) {
        LAUNCH(count_up, dim3(1), dim3(1), 0, nullptr, counter);
        REQUIRE(cudaMemcpy(results + static_cast<std::size_t>(turn) * page, counter, page, cudaMemcpyDeviceToHost));
        if (turn + 1 < turns)
            work();
    }
}

/* The GPU's own clock. */
void by_events(int *counter, char *results, int turns)
{
    cudaEvent_t begin, end;
    REQUIRE(cudaEventCreate(&begin));
    REQUIRE(cudaEventCreate(&end));
    REQUIRE(cudaEventRecord(begin));
    count_and_download(counter, results, turns);
    REQUIRE(cudaEventRecord(end));
    REQUIRE(cudaEventSynchronize(end));
    float passed_ms = 0;
    REQUIRE(cudaEventElapsedTime(&passed_ms, begin, end));
    say_time(static_cast<double>(passed_ms) / 1000, turns);
}

void by_clock(const std::string &how, const std::string &use, int *counter, char *results, int turns)
{
    Reader other;
    const double start = how == "thread" ? other.read() : now(how);
    count_and_download(counter, results, turns);
    if (use == "before" || use == "alone")
        std::printf("%d\n", sum_of(results, turns));
    const double passed_s = (how == "thread" ? other.read() : now(how)) - start;
    if (use == "alone")
        std::printf("%s\n", passed_s > 0 ? "later" : "not later");
    else
        say_time(passed_s, turns);
    if (use == "after")
        std::printf("%d\n", sum_of(results, turns));
}

/* Another thread reads a clock a moment before this one does. */
void by_two_threads(int *counter, char *results)
{
    constexpr int as_long_as = 40;
    Reader other;
    const double start = now("clock_gettime");
    LAUNCH(fill, dim3(1), dim3(1), 0, nullptr, counter, 1, 1);
    REQUIRE(cudaMemcpy(results, counter, page, cudaMemcpyDeviceToHost));
    other.begin();
    usleep(100);
    say_time(now("clock_gettime") - start, as_long_as);
}

} // namespace

int main(int count, char **arguments)
{
    const std::string how = arguments[1], use = arguments[2];
    const int turns = std::atoi(arguments[3]);
    if (count > 4)
        steps = std::atoi(arguments[4]);
    int *counter = on_device(page);
    REQUIRE(cudaMemset(counter, 0, page));
    REQUIRE(cudaDeviceSynchronize());
    char *results = static_cast<char *>(std::aligned_alloc(page, room));
    std::memset(results, 1, room);
    if (how == "events")
        by_events(counter, results, turns);
    else if (how == "both")
        by_two_threads(counter, results);
    else
        by_clock(how, use, counter, results, turns);
}
