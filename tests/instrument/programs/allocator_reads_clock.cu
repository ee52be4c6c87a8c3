// The program's own malloc reads a clock, as jemalloc's does, in threads that do nothing else.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <time.h>

extern "C" void *__libc_malloc(size_t bytes);

extern "C" void *malloc(size_t bytes)
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return __libc_malloc(bytes);
}

void *allocate(void *)
{
    return malloc(100);
}

int main()
{
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; ++i) {
        pthread_t thread;
        void *block = nullptr;
        pthread_create(&thread, nullptr, allocate, nullptr);
        pthread_join(thread, &block);
        std::printf("%d\n", block != nullptr);
        std::free(block);
    }
}
