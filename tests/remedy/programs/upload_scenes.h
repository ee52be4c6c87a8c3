/* Asynchronous uploads of what the device holds already. */
#ifndef FFM_TEST_UPLOAD_SCENES_H
#define FFM_TEST_UPLOAD_SCENES_H

#include <thread>
#include <unistd.h>

#include "scene.h"

/* Until a word of device memory is set. */
__global__ void await_word(volatile int *word)
{
    while (*word == 0) {
    }
}
PORTABLE_KERNEL(await_word);

namespace
{

void send(int *to, const int *from, cudaStream_t stream = nullptr)
{
    REQUIRE(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
}

void show(const int *device, cudaStream_t stream = nullptr)
{
    static int *result = pinned();
    REQUIRE(cudaMemcpyAsync(result, device, bytes, cudaMemcpyDeviceToHost, stream));
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        usleep(100);
    std::printf("%d\n", sum(result));
}

cudaStream_t nonblocking()
{
    cudaStream_t stream;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* The source may be overwritten as soon as each call returns. */
void sent_again()
{
    int *host = on_host(), *block = on_device();
    for (int turn = 0; turn < 8; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn % 2 + i;
        start_fill(block, turn);
        if (turn < 4)
            send(block, host);
        else
            REQUIRE(cudaMemcpyAsync(block, host, bytes, cudaMemcpyDefault, nullptr));
        std::memset(host, 0, bytes);
        show(block);
    }
}

/* What is already there is not sent, unless something was written or the memory was freed since. */
void sent_where_it_is()
{
    int *host = on_host(), *block = on_device(), *other = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        send(block, host);
        send(other, host);
    }
    show(block);
    REQUIRE(cudaMemcpyAsync(block + 1, block + 100, 400, cudaMemcpyDeviceToDevice, nullptr));
    send(other, host);
    send(block, host);
    show(block);
    host[5] = 3;
    REQUIRE(cudaMemcpyAsync(other, host, 64, cudaMemcpyHostToDevice, nullptr));
    show(other);
    host[5] = -1;
    send(other, host);
    show(other);
    for (int turn = 0; turn < 3; ++turn) {
        int *ordered = nullptr;
        cudaMemPool_t pool;
        REQUIRE(cudaMallocAsync(reinterpret_cast<void **>(&ordered), bytes, nullptr));
        send(ordered, host);
        send(ordered, host);
        show(ordered);
        if (turn == 1)
            REQUIRE(cudaFree(ordered));
        else
            REQUIRE(cudaFreeAsync(ordered, nullptr));
        REQUIRE(cudaDeviceSynchronize());
        REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0));
        REQUIRE(cudaMemPoolTrimTo(pool, 0));
    }
}

/* An upload on the legacy stream puts blocking streams in order, sent or not. */
void sent_between_streams()
{
    int *source = pinned(), *host = on_host(), *block = on_device(), *to = on_device(), *other = on_device();
    cudaStream_t first, second;
    REQUIRE(cudaStreamCreate(&first));
    REQUIRE(cudaStreamCreate(&second));
    send(other, host);
    for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < count; ++i)
            source[i] = turn + i;
        for (int time = 0; time < 4; ++time)
            send(block, source, first);
        send(other, host);
        REQUIRE(cudaMemcpyAsync(to, block, bytes, cudaMemcpyDeviceToDevice, second));
        show(to, second);
        show(other);
    }
}

/* The same content goes to several streams at once, to threads' own ones and to short-lived ones. */
void sent_to_streams()
{
    int *host = on_host(), *blocks[6];
    cudaStream_t streams[] = {nonblocking(), nonblocking(), nullptr};
    for (int *&block : blocks)
        block = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn / 2 + i;
        for (int number = 0; number < 3; ++number) {
            LAUNCH(fill, dim3(count / 256), dim3(256), 0, streams[number], blocks[number], turn, count);
            send(blocks[number], host, streams[number]);
            send(blocks[number], host, streams[number]);
        }
        std::thread([&] { send(blocks[3], host, cudaStreamPerThread), show(blocks[3], cudaStreamPerThread); }).join();
        send(blocks[4], host, cudaStreamPerThread);
        cudaStream_t brief = nonblocking();
        LAUNCH(fill, dim3(count / 256), dim3(256), 0, brief, blocks[5], turn, count);
        send(blocks[5], host, brief);
        REQUIRE(cudaStreamDestroy(brief));
        for (int number = 0; number < 3; ++number)
            show(blocks[number], streams[number]);
        show(blocks[4], cudaStreamPerThread);
        REQUIRE(cudaDeviceSynchronize());
        show(blocks[5]);
    }
}

/* The program fills a pinned source after the call: the copy waits for a word that is set after that. */
void source_is_filled_later()
{
    auto wait =
        reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(driver("cuStreamWaitValue32_v2"));
    int *source = pinned(), *block = on_device(), *word = on_device(), *one = pinned();
    cudaStream_t waits = nonblocking(), sets = nonblocking();
    for (int turn = 0; turn < 5; ++turn) {
        std::memset(source, 0, bytes);
        send(block, source);
        REQUIRE(cudaMemset(word, 0, 4));
        REQUIRE(cudaDeviceSynchronize());
        *one = 1;
        if (turn % 2)
            LAUNCH(await_word, dim3(1), dim3(1), 0, waits, word);
        else
            std::printf("%d\n", wait(waits, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ));
        send(block, source, waits);
        for (int i = 0; i < count; ++i)
            source[i] = turn + i;
        REQUIRE(cudaMemcpyAsync(word, one, 4, cudaMemcpyHostToDevice, sets));
        show(block, waits);
    }
}

/* Work that is under way fills the source: a host function, a download, a kernel. */
void source_is_being_filled()
{
    static int *source = pinned();
    int *device = on_device(), *block = on_device();
    cudaStream_t stream = nonblocking();
    for (int turn = 0; turn < 6; ++turn) {
        std::memset(source, 0, bytes);
        send(block, source);
        REQUIRE(cudaDeviceSynchronize());
        LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, turn % 3 ? device : source, turn, count);
        if (turn % 3 == 1)
            REQUIRE(cudaMemcpyAsync(source, device, bytes, cudaMemcpyDeviceToHost, stream));
        if (turn % 3 == 2)
            REQUIRE(cudaLaunchHostFunc(stream, [](void *) { std::memset(source, 1, bytes); }, nullptr));
        send(block, source, stream);
        show(block, stream);
    }
}

/* Memory from the driver's pool: an upload to it, a download from it, and its free on a separate stream. */
void pool_memory_goes_round()
{
    int *host = on_host(), *result = on_host();
    cudaStream_t frees = nonblocking();
    for (int turn = 0; turn < 4; ++turn) {
        int *ordered = nullptr, *again = nullptr;
        REQUIRE(cudaMallocAsync(reinterpret_cast<void **>(&ordered), bytes, nullptr));
        REQUIRE(cudaMemcpyAsync(ordered, host, bytes, cudaMemcpyHostToDevice, nullptr));
        show(ordered);
        start_fill(ordered, turn);
        REQUIRE(cudaMemcpy(result, ordered, bytes, cudaMemcpyDeviceToHost));
        if (turn % 2)
            REQUIRE(cudaFree(ordered));
        else
            REQUIRE(cudaFreeAsync(ordered, frees));
        REQUIRE(cudaMallocAsync(reinterpret_cast<void **>(&again), bytes, frees));
        LAUNCH(fill, dim3(count / 256), dim3(256), 0, frees, again, 100, count);
        std::printf("%d\n", sum(result));
        REQUIRE(cudaFreeAsync(again, frees));
    }
}

/* An upload in a capture is part of the graph, which reads the source again at each launch. */
void sent_by_a_graph()
{
    int *source = pinned(), *block = on_device();
    cudaStream_t stream = nonblocking();
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    std::memset(source, 0, bytes);
    send(block, source, stream);
    REQUIRE(cudaStreamSynchronize(stream));
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    send(block, source, stream);
    REQUIRE(cudaStreamEndCapture(stream, &graph));
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
    for (int turn = 0; turn < 3; ++turn) {
        source[turn] = 7;
        REQUIRE(cudaGraphLaunch(executable, stream));
        show(block, stream);
    }
}

void sent_to_managed_memory()
{
    int *host = on_host(), *managed = nullptr;
    REQUIRE(cudaMallocManaged(reinterpret_cast<void **>(&managed), bytes));
    for (int turn = 0; turn < 2; ++turn) {
        REQUIRE(cudaMemcpyAsync(managed, host, bytes, cudaMemcpyHostToDevice, nullptr));
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d\n", sum(managed));
        managed[turn] = 9;
    }
}

} // namespace

#endif
