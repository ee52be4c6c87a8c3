// Sums on the GPU the numbers that it reads from its standard input, each waited for once too often; fails without any.
#include <cuda_runtime.h>

#include <cstdio>

int main()
{
    int *device = nullptr;
    cudaMalloc(&device, sizeof(int));
    long sum = 0;
    int numbers = 0;
    for (int number = 0; std::scanf("%d", &number) == 1; numbers++) {
        int answer = 0;
        cudaMemcpy(device, &number, sizeof(int), cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
        cudaMemcpy(&answer, device, sizeof(int), cudaMemcpyDeviceToHost);
        sum += answer;
    }
    cudaFree(device);
    std::printf("%ld\n", sum);
    return numbers == 0 ? 3 : 0;
}
