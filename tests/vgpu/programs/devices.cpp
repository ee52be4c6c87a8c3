/* A program on two devices; prints the first call that does not answer what it should, or "all answered". */
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "portable_kernel.h"

__global__ void add(int *x, int value)
{
    *x += value;
}
PORTABLE_KERNEL(add);

static void expect(bool right, const char *what)
{
    if (right)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(cudaGetLastError()));
    std::exit(1);
}
#define OK(call) expect((call) == cudaSuccess, #call)
#define EXPECT(condition) expect((condition), #condition)

static int *number_on(int device, int value)
{
    int *pointer = nullptr;
    OK(cudaSetDevice(device));
    OK(cudaMalloc(reinterpret_cast<void **>(&pointer), sizeof value));
    OK(cudaMemcpy(pointer, &value, sizeof value, cudaMemcpyHostToDevice));
    return pointer;
}

static int fetched(const int *pointer)
{
    int value = -1;
    OK(cudaMemcpy(&value, pointer, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static void use_both()
{
    int *numbers[2] = {number_on(0, 10), number_on(1, 20)};
    for (int device : {0, 1}) {
        int used = -1;
        OK(cudaSetDevice(device));
        OK(cudaGetDevice(&used));
        EXPECT(used == device);
        LAUNCH(add, dim3(1), dim3(1), 0, nullptr, numbers[device], device + 1);
        OK(cudaGetLastError());
        OK(cudaDeviceSynchronize());
    }
    EXPECT(fetched(numbers[0]) == 11 && fetched(numbers[1]) == 22);

    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, numbers[1]));
    EXPECT(attributes.device == 1);

    OK(cudaMemcpyPeer(numbers[0], 0, numbers[1], 1, sizeof(int)));
    EXPECT(fetched(numbers[0]) == 22);
    OK(cudaSetDevice(0));
    LAUNCH(add, dim3(1), dim3(1), 0, nullptr, numbers[0], 5);
    OK(cudaMemcpy(numbers[1], numbers[0], sizeof(int), cudaMemcpyDefault));
    OK(cudaDeviceSynchronize());
    EXPECT(fetched(numbers[1]) == 27);
    OK(cudaFree(numbers[0]));
    OK(cudaFree(numbers[1]));
}

static void peers()
{
    int can = 0;
    OK(cudaSetDevice(0));
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can == 1);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    EXPECT(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled);
    OK(cudaDeviceDisablePeerAccess(1));
    EXPECT(cudaSetDevice(2) == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
}

/* A kernel goes to its device's streams only; events order streams of both. */
static void streams()
{
    cudaStream_t first, second;
    cudaEvent_t event;
    int *numbers[2] = {number_on(0, 1), number_on(1, 2)};
    OK(cudaSetDevice(0));
    OK(cudaStreamCreate(&first));
    OK(cudaEventCreate(&event));
    OK(cudaSetDevice(1));
    OK(cudaStreamCreate(&second));
    LAUNCH(add, dim3(1), dim3(1), 0, first, numbers[1], 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    OK(cudaSetDevice(0));
    LAUNCH(add, dim3(1), dim3(1), 0, first, numbers[0], 1);
    OK(cudaEventRecord(event, first));
    OK(cudaSetDevice(1));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaMemcpyPeerAsync(numbers[1], 1, numbers[0], 0, sizeof(int), second));
    OK(cudaStreamSynchronize(second));
    EXPECT(fetched(numbers[1]) == 2);
    OK(cudaStreamDestroy(second));
    OK(cudaSetDevice(0));
    OK(cudaStreamDestroy(first));
    OK(cudaEventDestroy(event));
}

int main()
{
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    use_both();
    peers();
    streams();
    std::thread([] {
        int device = -1;
        OK(cudaGetDevice(&device));
        EXPECT(device == 0);
        use_both();
    }).join();
    OK(cudaSetDevice(1));
    OK(cudaDeviceReset());
    use_both();
    std::puts("all answered");
}
