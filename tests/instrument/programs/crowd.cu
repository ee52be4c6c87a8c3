/* Hundreds of threads that are all there at once, and then use the driver. */
#include <cstdio>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <pthread.h>

enum { THREADS = 400, WORDS = 1024 };

int main()
{
    void *device;
    pthread_barrier_t all;
    std::vector<std::thread> threads;
    std::vector<int> results(THREADS * WORDS, 1);
    cudaMalloc(&device, WORDS * sizeof(int));
    cudaMemset(device, 0, WORDS * sizeof(int));
    pthread_barrier_init(&all, nullptr, THREADS);
    for (int number = 0; number < THREADS; number++)
        threads.emplace_back([&, number] {
            int *result = &results[static_cast<std::size_t>(number) * WORDS];
            pthread_barrier_wait(&all);
            cudaMemcpy(result, device, WORDS * sizeof(int), cudaMemcpyDeviceToHost);
            result[0] += number;
        });
    long sum = 0;
    for (int number = 0; number < THREADS; number++) {
        threads[number].join();
        sum += results[static_cast<std::size_t>(number) * WORDS];
    }
    std::printf("%ld\n", sum);
    return 0;
}
