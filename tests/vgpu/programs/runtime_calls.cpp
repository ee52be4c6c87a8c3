/* Calls of every family of the CUDA runtime, as any program makes them; prints the first call that does not answer what
 * it should, or "all answered". Linked with NVIDIA's own runtime. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "portable_kernel.h"

__global__ void add(int *x, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += value;
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

constexpr int count = 10000;
constexpr std::size_t bytes = count * sizeof(int);

template <typename Type> Type *address(void *pointer)
{
    return static_cast<Type *>(pointer);
}

static void devices()
{
    int devices = 0, device = -1, driver = 0, runtime = 0, value = 0;
    OK(cudaGetDeviceCount(&devices));
    OK(cudaSetDevice(0));
    OK(cudaGetDevice(&device));
    OK(cudaDriverGetVersion(&driver));
    OK(cudaRuntimeGetVersion(&runtime));
    EXPECT(devices == 1 && device == 0 && driver >= 13000 && runtime >= 12000);
    EXPECT(cudaSetDevice(devices) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(properties.major == 9 && properties.multiProcessorCount == 132 && properties.warpSize == 32);
    EXPECT(std::strcmp(properties.name, "Virtual H200") == 0);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    EXPECT(value == 1024);
    OK(cudaDeviceGetPCIBusId(properties.name, sizeof properties.name, 0));
    OK(cudaDeviceGetByPCIBusId(&device, properties.name));
    std::size_t limit = 0;
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
    OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    EXPECT(limit == 1 << 20);
    EXPECT(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
}

static void memory()
{
    void *device, *pinned, *managed, *pitched, *freed;
    OK(cudaMalloc(&device, bytes));
    OK(cudaMallocHost(&pinned, bytes));
    OK(cudaMallocManaged(&managed, bytes));
    std::size_t pitch = 0, free = 0, total = 0;
    OK(cudaMallocPitch(&pitched, &pitch, 100, 10));
    OK(cudaMemGetInfo(&free, &total));
    EXPECT(free < total && pitch >= 100);
    EXPECT(cudaMalloc(&freed, std::size_t{1} << 50) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);

    std::vector<int> up(count, 5), down(count);
    OK(cudaMemcpy(device, up.data(), bytes, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(pinned, device, bytes, cudaMemcpyDefault));
    OK(cudaMemcpy(managed, device, bytes, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(down.data(), managed, bytes, cudaMemcpyDeviceToHost));
    EXPECT(down == up && std::memcmp(pinned, up.data(), bytes) == 0);
    OK(cudaMemset(device, 0, bytes));
    OK(cudaMemcpy(down.data(), device, bytes, cudaMemcpyDeviceToHost));
    EXPECT(down == std::vector<int>(count, 0));
    OK(cudaMemcpy2D(pitched, pitch, up.data(), 100, 100, 10, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(down.data(), 100, pitched, pitch, 100, 10, cudaMemcpyDeviceToHost));
    EXPECT(std::memcmp(down.data(), up.data(), 1000) == 0);

    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, device));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    OK(cudaPointerGetAttributes(&attributes, up.data()));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    OK(cudaHostRegister(up.data(), bytes, cudaHostRegisterDefault));
    OK(cudaHostUnregister(up.data()));
    OK(cudaFree(device));
    OK(cudaFree(managed));
    OK(cudaFree(pitched));
    OK(cudaFreeHost(pinned));
}

static void streams()
{
    cudaStream_t stream, other;
    cudaEvent_t begin, end;
    void *device, *pool, *pinned;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&device, bytes));
    OK(cudaMallocHost(&pinned, bytes));
    OK(cudaEventRecord(begin, stream));
    OK(cudaMemsetAsync(device, 0, bytes, stream));
    LAUNCH(add, dim3((count + 255) / 256), dim3(256), 0, stream, address<int>(device), 3, count);
    OK(cudaGetLastError());
    OK(cudaEventRecord(end, stream));
    OK(cudaStreamWaitEvent(other, end, 0));
    OK(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, other));
    bool called = false;
    OK(cudaLaunchHostFunc(other, [](void *flag) { *address<bool>(flag) = true; }, &called));
    OK(cudaStreamSynchronize(other));
    EXPECT(called && address<int>(pinned)[count - 1] == 3);
    OK(cudaEventSynchronize(end));
    float milliseconds = -1;
    OK(cudaEventElapsedTime(&milliseconds, begin, end));
    EXPECT(milliseconds > 0 && cudaEventQuery(end) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess);
    OK(cudaMallocAsync(&pool, bytes, stream));
    OK(cudaFreeAsync(pool, stream));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(device));
    OK(cudaFreeHost(pinned));
    OK(cudaEventDestroy(begin));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(stream));
    OK(cudaStreamDestroy(other));
}

static void kernels()
{
    int blocks = 0;
    const void *kernel = reinterpret_cast<const void *>(&add);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0));
    EXPECT(blocks == 8);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, kernel));
    EXPECT(attributes.maxThreadsPerBlock == 1024);
}

static void graphs()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    void *device;
    int value = 0;
    OK(cudaMalloc(&device, sizeof value));
    OK(cudaMemset(device, 0, sizeof value));
    OK(cudaDeviceSynchronize()); /* a per-thread default stream is in no order with others */
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    LAUNCH(add, dim3(1), dim3(1), 0, stream, address<int>(device), 2, 1);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&executable, graph, 0));
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT(value == 4);
    OK(cudaGraphExecDestroy(executable));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(device));
}

/* Every thread has its own default stream, if the program is built for that, and all use the one context. */
static void threads()
{
    int sums[2] = {};
    auto work = [&sums](int number) {
        void *device;
        OK(cudaMalloc(&device, sizeof(int)));
        OK(cudaMemsetAsync(device, 0, sizeof(int), cudaStreamPerThread));
        LAUNCH(add, dim3(1), dim3(1), 0, cudaStreamPerThread, address<int>(device), number + 1, 1);
        OK(cudaStreamSynchronize(cudaStreamPerThread));
        OK(cudaMemcpy(&sums[number], device, sizeof(int), cudaMemcpyDeviceToHost));
        OK(cudaFree(device));
    };
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
    EXPECT(sums[0] == 1 && sums[1] == 2);
}

int main()
{
    for (int round = 0; round < 2; ++round) {
        devices();
        memory();
        streams();
        kernels();
        graphs();
        threads();
        OK(cudaDeviceReset());
    }
    std::puts("all answered");
}
