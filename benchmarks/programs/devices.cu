/* devices KIND DEVICES TURNS [fixed]: one kind of problem with several devices, TURNS times, or the same without it.
 * Prints a sum of what came back. */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "portable_kernel.h"
#include "runtime.h"

static constexpr std::size_t weights = 1 << 20;

__global__ void step(int *data)
{
    if (threadIdx.x == 0)
        data[0] += 1;
}
PORTABLE_KERNEL(step);

/* Reads no clock: a wait before that would count as one for timing. */
static void work()
{
    volatile int left = 40000;
    while (left > 0)
        left = left - 1;
}

struct Device {
    int *data = nullptr, *constant = nullptr;
};

/* What each device does in a turn; the downloads behind it wait for all of them. */
static void turn(const std::string &kind, bool fixed, int device, const Device &memory, const std::vector<char> &sent)
{
    check(cudaSetDevice(device));
    if (kind == "upload" && !fixed)
        check(cudaMemcpy(memory.constant, sent.data(), weights, cudaMemcpyHostToDevice));
    int *block = nullptr;
    if (kind == "free" && !fixed)
        check(cudaMalloc(reinterpret_cast<void **>(&block), weights));
    LAUNCH(step, dim3(1), dim3(1), 0, nullptr, memory.data);
    if (kind == "wait" && !fixed)
        check(cudaDeviceSynchronize());
    if (kind == "free" && !fixed)
        check(cudaFree(block));
    work();
}

int main(int count, char **words)
{
    if (count < 4) {
        std::fprintf(stderr, "usage: devices wait|upload|free DEVICES TURNS [fixed]\n");
        return 1;
    }
    const std::string kind = words[1];
    const int turns = std::atoi(words[3]);
    const bool fixed = count > 4;
    std::vector<Device> devices(static_cast<std::size_t>(std::atoi(words[2])));
    std::vector<char> sent(weights, 1);
    std::vector<int> received(devices.size());
    const int zero = 0;
    long sum = 0;
    for (std::size_t device = 0; device < devices.size(); ++device) {
        check(cudaSetDevice(static_cast<int>(device)));
        check(cudaMalloc(reinterpret_cast<void **>(&devices[device].data), sizeof zero));
        check(cudaMalloc(reinterpret_cast<void **>(&devices[device].constant), weights));
        check(cudaMemcpy(devices[device].data, &zero, sizeof zero, cudaMemcpyHostToDevice));
        check(cudaMemcpy(devices[device].constant, sent.data(), weights, cudaMemcpyHostToDevice));
    }
    for (int number = 0; number < turns; ++number) {
        for (std::size_t device = 0; device < devices.size(); ++device)
            turn(kind, fixed, static_cast<int>(device), devices[device], sent);
        for (std::size_t device = 0; device < devices.size(); ++device) {
            check(cudaSetDevice(static_cast<int>(device)));
            check(cudaMemcpy(&received[device], devices[device].data, sizeof zero, cudaMemcpyDeviceToHost));
            sum += received[device];
        }
    }
    std::printf("%ld\n", sum);
}
