// Threads that never call the driver work between its calls: one that was started before the driver was loaded, and
// some that are started for each part of the work.

#include <cuda_runtime.h>
#include <pthread.h>
#include <time.h>

#include <cstdlib>

namespace
{

const int WORKERS = 2;
double seconds;
volatile double sinks[WORKERS];
pthread_barrier_t filled;

double processor_s()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

__attribute__((noinline)) void fill_rows()
{
    const double end = processor_s() + seconds;
    while (processor_s() < end)
        for (int i = 0; i < 100000; i++)
            sinks[0] = sinks[0] * 1.0000001;
}

__attribute__((noinline)) void sum_rows(volatile double *sink)
{
    const double end = processor_s() + seconds;
    while (processor_s() < end)
        for (int i = 0; i < 100000; i++)
            *sink = *sink * 0.9999999;
}

void *fill(void *)
{
    for (int round = 0; round < 2; round++) {
        pthread_barrier_wait(&filled);
        fill_rows();
        pthread_barrier_wait(&filled);
    }
    return nullptr;
}

void *sum(void *sink)
{
    sum_rows(static_cast<volatile double *>(sink));
    return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
    seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
    pthread_barrier_init(&filled, nullptr, 2);
    pthread_t early, threads[WORKERS];
    pthread_create(&early, nullptr, fill, nullptr);
    void *memory;
    cudaMalloc(&memory, 4096);
    for (int round = 0; round < 2; round++) {
        pthread_barrier_wait(&filled);
        pthread_barrier_wait(&filled);
        cudaMemset(memory, round, 4096);
        for (int i = 0; i < WORKERS; i++)
            pthread_create(&threads[i], nullptr, sum, const_cast<double *>(&sinks[i]));
        for (pthread_t thread : threads)
            pthread_join(thread, nullptr);
        cudaMemset(memory, round, 4096);
    }
    pthread_join(early, nullptr);
    cudaFree(memory);
    return 0;
}
