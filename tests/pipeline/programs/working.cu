// Works in its own functions between driver calls, and in one that waits.

#include <cuda_runtime.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace
{

double processor_s()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

volatile double sink = 1;

__attribute__((noinline)) void build_matrix(double seconds)
{
    const double end = processor_s() + seconds;
    while (processor_s() < end)
        for (int i = 0; i < 100000; i++)
            sink = sink * 1.0000001; // built here
}

__attribute__((noinline)) void check_rows(double seconds)
{
    const double end = processor_s() + seconds;
    while (processor_s() < end)
        for (int i = 0; i < 100000; i++)
            sink = sink * 0.9999999; // checked here
}

__attribute__((noinline)) void rest(double seconds)
{
    timespec pause = {static_cast<time_t>(seconds), static_cast<long>(seconds * 1e9) % 1000000000};
    if (nanosleep(&pause, nullptr) != 0)
        std::puts("interrupted");
}

} // namespace

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
    void *memory;
    cudaMalloc(&memory, 4096);
    for (int round = 0; round < 3; round++) {
        build_matrix(2 * seconds);
        check_rows(seconds);
        cudaMemset(memory, round, 4096);
    }
    rest(seconds);
    cudaFree(memory);
    return 0;
}
