// Threads that never call the driver are sampled while the C library's allocator holds its locks.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <time.h>

constexpr int threads = 40, blocks = 64;
constexpr long duration = 12 * 1000 * 1000; // nanoseconds of a thread's processor time: there is a sample each 10 ms

long used()
{
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000 * 1000 * 1000 + time.tv_nsec;
}

void *allocate(void *)
{
    void *taken[blocks] = {};
    unsigned seed = 1;
    while (used() < duration)
        for (int turn = 0; turn < 2000; ++turn) {
            seed = seed * 1103515245 + 12345;
            void *&block = taken[(seed >> 16) % blocks];
            std::free(block);
            block = std::malloc(1100 + (seed >> 8) % 30000);
        }
    for (void *block : taken)
        std::free(block);
    return nullptr;
}

int main()
{
    cudaDeviceSynchronize();
    for (int i = 0; i < threads; ++i) {
        pthread_t thread;
        pthread_create(&thread, nullptr, allocate, nullptr);
        pthread_join(thread, nullptr);
    }
    std::puts("all have ended");
}
