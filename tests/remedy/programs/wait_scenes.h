/* Explicit synchronizations. */
#ifndef FFM_TEST_WAIT_SCENES_H
#define FFM_TEST_WAIT_SCENES_H

#include <thread>
#include <unistd.h>
#include <vector>

#include "scene.h"

namespace
{

void event_times()
{
    int *block = on_device();
    cudaEvent_t first, second;
    REQUIRE(cudaEventCreate(&first));
    REQUIRE(cudaEventCreate(&second));
    REQUIRE(cudaEventRecord(first));
    start_fill(block, 1);
    REQUIRE(cudaEventRecord(second));
    REQUIRE(cudaDeviceSynchronize());
    float milliseconds = -1;
    std::printf("%s\n", cudaGetErrorName(cudaEventElapsedTime(&milliseconds, first, second)));
    std::printf("%d\n", milliseconds > 10);
    start_fill(block, 2);
    REQUIRE(cudaEventRecord(second));
    REQUIRE(cudaEventSynchronize(second));
    std::printf("%s\n", cudaGetErrorName(cudaEventQuery(second)));
}

void host_functions()
{
    int *block = on_device();
    static volatile int seen = 0;
    start_fill(block, 1);
    REQUIRE(cudaLaunchHostFunc(nullptr, [](void *) { seen = 42; }, nullptr));
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", seen);
}

void managed_memory()
{
    int *memory = nullptr;
    REQUIRE(cudaMallocManaged(reinterpret_cast<void **>(&memory), bytes));
    start_fill(memory, 3);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

void mapped_memory()
{
    int *memory = nullptr, *alias = nullptr;
    REQUIRE(cudaHostAlloc(reinterpret_cast<void **>(&memory), bytes, cudaHostAllocMapped));
    REQUIRE(cudaHostGetDevicePointer(reinterpret_cast<void **>(&alias), memory, 0));
    int *freed = on_device();
    start_fill(alias, 5);
    REQUIRE(cudaFree(freed));
    std::printf("%d\n", sum(memory));
}

void unified_addresses()
{
    int *memory = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&memory), bytes));
    start_fill(memory, 7);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

void cooperative_launch()
{
    int *memory = nullptr, value = 7, n = count;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&memory), bytes));
    void *arguments[] = {&memory, &value, &n};
    REQUIRE(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(fill), dim3(count / 256), dim3(256), arguments, 0,
                                        nullptr));
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

void threads_at_once()
{
    int sums[4] = {};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([number, &sums] {
            cudaStream_t stream = nullptr;
            if (number > 1)
                REQUIRE(cudaStreamCreateWithFlags(&stream, number == 2 ? cudaStreamDefault : cudaStreamNonBlocking));
            int *host = on_host();
            for (int turn = 0; turn < 8; ++turn) {
                int *first = on_device(), *second = on_device();
                LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, first, number + turn, count);
                REQUIRE(number % 2 ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream));
                REQUIRE(cudaMemcpy(host, first, bytes, cudaMemcpyDeviceToHost));
                host[turn] = turn;
                REQUIRE(cudaMemcpy(second, host, bytes, cudaMemcpyHostToDevice));
                REQUIRE(cudaFree(first));
                REQUIRE(cudaMemcpy(host, second, bytes, cudaMemcpyDeviceToHost));
                sums[number] += sum(host);
                REQUIRE(cudaFree(second));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    for (int result : sums)
        std::printf("%d\n", result);
}

void nothing_is_freed()
{
    static volatile int seen = 0;
    start_fill(on_device(), 1);
    REQUIRE(cudaLaunchHostFunc(nullptr, [](void *) { seen = 42; }, nullptr));
    REQUIRE(cudaFree(nullptr)); /* waits for nothing */
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", seen);
}

/* The work of a stream continues when it is destroyed, and a wait for all work waits for it too. */
void stream_is_destroyed()
{
    int *from = on_device(), *to = on_device(), *host = on_host();
    for (int turn = 0; turn < 3; ++turn) {
        for (int number = 0; number < 70; ++number) {
            cudaStream_t stream;
            REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            if (number == 0)
                LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, from, turn, count);
            REQUIRE(cudaStreamDestroy(stream));
        }
        REQUIRE(cudaDeviceSynchronize());
        REQUIRE(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr));
        REQUIRE(cudaMemcpy(host, to, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
    }
}

/* The thread's own default stream is captured before anything else is done on it, though waits were removed. */
void own_stream_is_captured()
{
    int *block = on_device(), *host = on_host();
    start_fill(block, 1);
    REQUIRE(cudaDeviceSynchronize());
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    REQUIRE(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal));
    LAUNCH(fill, dim3(count / 256), dim3(256), 0, cudaStreamPerThread, block, 2, count);
    REQUIRE(cudaStreamEndCapture(cudaStreamPerThread, &graph));
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
    REQUIRE(cudaGraphLaunch(executable, cudaStreamPerThread));
    REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
    std::printf("%d\n", sum(host));
}

/* A capture continues when the end of another, nonexistent one is requested. */
void wrong_end_of_a_capture()
{
    int *block = on_device(), *host = on_host();
    cudaStream_t captured, other;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    REQUIRE(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    REQUIRE(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    std::printf("%s\n", cudaGetErrorName(cudaStreamEndCapture(other, &graph)));
    cudaGetLastError();
    REQUIRE(cudaStreamSynchronize(other));
    LAUNCH(fill, dim3(count / 256), dim3(256), 0, captured, block, 3, count);
    REQUIRE(cudaStreamSynchronize(other));
    REQUIRE(cudaStreamEndCapture(captured, &graph));
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
    REQUIRE(cudaGraphLaunch(executable, captured));
    REQUIRE(cudaStreamSynchronize(captured));
    REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
    std::printf("%d\n", sum(host));
}

/* A stream waits for a value that another thread writes after a download of its own: no wait may be kept on the device
 * that the download would have to come after. */
void value_is_awaited()
{
    auto wait =
        reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(driver("cuStreamWaitValue32_v2"));
    volatile int *flag = pinned(sizeof(int));
    int *result = pinned(), *block = on_device();
    *flag = 0;
    cudaStream_t stream;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::printf("%d\n", wait(stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
    LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, block, 5, count);
    REQUIRE(cudaMemcpyAsync(result, block, bytes, cudaMemcpyDeviceToHost, stream));
    int other = 0;
    std::thread releases([&] {
        usleep(50'000); /* the other thread waits by now */
        other = sum(download(on_host(), 4));
        *flag = 1;
    });
    REQUIRE(cudaStreamSynchronize(stream));
    std::printf("%d\n", sum(result));
    releases.join();
    std::printf("%d\n", other);
}

/* The kernel is not given the address of the pinned memory, but finds it. */
void addresses_in_memory()
{
    int *memory = pinned(), *block = on_device(), **table = reinterpret_cast<int **>(on_device());
    REQUIRE(cudaMemcpy(table, &memory, sizeof memory, cudaMemcpyHostToDevice));
    start_fill(block, 1);
    LAUNCH(fill_through, dim3(count / 256), dim3(256), 0, nullptr, table, 7, count);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

/* Work before and after waits on one stream, and then on another. */
void streams_come_later()
{
    int *from = on_device(), *to = on_device(), *host = pinned();
    for (int turn = 0; turn < 20; ++turn) {
        start_fill(from, turn);
        REQUIRE(cudaDeviceSynchronize());
    }
    cudaStream_t stream;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    REQUIRE(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    REQUIRE(cudaMemcpyAsync(host, to, bytes, cudaMemcpyDeviceToHost, stream));
    REQUIRE(cudaStreamSynchronize(stream));
    std::printf("%d\n", sum(host));
}

/* A kernel of which the program says that it may begin before the one that came before it ends. */
void kernels_begin_early()
{
    int *block = on_device(), value = 7, n = count;
    void *arguments[] = {&block, &value, &n};
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(count / 256);
    configuration.blockDim = dim3(256);
    configuration.attrs = &early;
    configuration.numAttrs = 1;
    for (int turn = 0; turn < 3; ++turn) {
        start_fill(block, turn);
        REQUIRE(cudaDeviceSynchronize());
        REQUIRE(cudaLaunchKernelExC(&configuration, reinterpret_cast<void *>(fill), arguments));
    }
}

/* A library's private calls, which may enqueue work on streams that only it knows. */
void calls_are_handed_out()
{
    auto hand_out = reinterpret_cast<CUresult (*)(const void **, const CUuuid *)>(driver("cuGetExportTable"));
    const CUuuid key = {{'v', 'g', 'p', 'u', '-', 'p', 'r', 'i', 'v', 'a', 't', 'e', '-', 't', '1', 0}};
    const void *table;
    std::printf("%d\n", hand_out(&table, &key));
    for (int turn = 0; turn < 3; ++turn) {
        start_fill(on_device(), turn);
        REQUIRE(cudaDeviceSynchronize());
    }
}

/* The program asks for what it waited for while later work waits for the program. */
void asks_before_it_lets_go()
{
    static volatile bool let_go = false;
    cudaEvent_t over;
    REQUIRE(cudaEventCreate(&over));
    start_fill(on_device(), 1);
    REQUIRE(cudaEventRecord(over));
    REQUIRE(cudaDeviceSynchronize());
    REQUIRE(cudaLaunchHostFunc(
        nullptr,
        [](void *) {
            while (!let_go)
                usleep(100);
        },
        nullptr));
    std::printf("%s\n", cudaGetErrorName(cudaEventQuery(over)));
    /* Only then, and late enough for the wait to find the function under way. */
    std::thread letting([] {
        usleep(100'000);
        let_go = true;
    });
    REQUIRE(cudaDeviceSynchronize());
    letting.join();
}

/* The program asks each time for what it waited for while later work is under way. */
void asks_behind_later_work()
{
    int *block = on_device();
    cudaEvent_t over;
    REQUIRE(cudaEventCreate(&over));
    for (int turn = 0; turn < 4; ++turn) {
        start_fill(block, turn);
        REQUIRE(cudaEventRecord(over));
        REQUIRE(cudaDeviceSynchronize());
        start_fill(block, turn);
        std::printf("%s\n", cudaGetErrorName(cudaEventQuery(over)));
    }
}

void prints_at_the_end()
{
    start_fill(on_device(), 1);
    LAUNCH(say, dim3(1), dim3(1), 0, nullptr, 42);
    REQUIRE(cudaDeviceSynchronize());
}

} // namespace

#endif
