/* Uploads, and transfers under way. */
#ifndef FFM_TEST_TRANSFER_SCENES_H
#define FFM_TEST_TRANSFER_SCENES_H

#include <thread>
#include <unistd.h>

#include "scene.h"

namespace
{

void source_is_overwritten()
{
    int *host = nullptr, *block = on_device();
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&host), bytes));
    for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn * i;
        start_fill(block, 1);
        REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        std::memset(host, 0, bytes);
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
    }
}

/* The program's own asynchronous transfers: their waits are removed, and the CPU waits where it touches the memory. */
void transfers_under_way()
{
    int *source = pinned(), *result = pinned(), *block = on_device(), *other = on_device();
    cudaStream_t stream;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < count; ++i)
            source[i] = turn * i;
        LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, other, turn, count);
        REQUIRE(cudaMemcpyAsync(block, source, bytes, cudaMemcpyHostToDevice, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        std::printf("%d\n", sum(source));
        source[turn] = -1;
        REQUIRE(cudaMemcpyAsync(result, block, bytes, cudaMemcpyDeviceToHost, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        std::printf("%d\n", sum(result));
        REQUIRE(cudaMemcpyAsync(result, other, bytes / 2, cudaMemcpyDeviceToHost, stream));
        REQUIRE(cudaMemcpyAsync(source + 100, result + count / 2, 4000, cudaMemcpyHostToHost, stream));
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d %d\n", sum(result), source[100]);
    }
    REQUIRE(cudaStreamDestroy(stream));
}

/* Memory goes that transfers still work on, from its middle, and its addresses are taken again. */
void freed_under_way()
{
    int *block = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        int *memory = pinned(4 * bytes);
        start_fill(block, turn);
        REQUIRE(cudaMemcpyAsync(memory + 2 * count, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaDeviceSynchronize());
        if (turn % 2)
            std::printf("%d\n", sum(memory + 2 * count));
        REQUIRE(cudaFreeHost(memory));
        int *again = on_host();
        std::printf("%d\n", sum(again));
        std::free(again);
    }
}

/* Two threads hand a pinned buffer over; only waits for all work keep it whole. */
void handed_over()
{
    int *memory = pinned(), *block = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        start_fill(block, turn);
        REQUIRE(cudaMemcpyAsync(memory, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaStreamSynchronize(nullptr));
        std::thread([memory] {
            std::printf("%d\n", sum(memory));
            std::memset(memory, 0, bytes);
        }).join();
        int ends[2], fetched = 0;
        REQUIRE(cudaMemcpyAsync(memory, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaStreamSynchronize(nullptr));
        if (pipe(ends) != 0 || write(ends[1], memory + 7, sizeof fetched) != sizeof fetched ||
            read(ends[0], &fetched, sizeof fetched) != sizeof fetched)
            std::exit(1);
        close(ends[0]);
        close(ends[1]);
        std::printf("%d\n", fetched);
    }
}

void contents_come_back()
{
    int *host = on_host(), *block = on_device();
    for (int turn = 0; turn < 6; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn % 2 + i;
        REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        if (turn > 2)
            start_fill(block, turn); /* the destination holds something else then */
        if (turn > 3)
            REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        std::printf("%d\n", sum(download(on_host(), 0)));
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
    }
}

void contents_are_there()
{
    int *host = on_host(), *block = on_device(), *other = on_device();
    auto upload = [](int *to, const int *from) { REQUIRE(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)); };
    auto show = [&](const int *device) {
        int *copy = on_host();
        REQUIRE(cudaMemcpy(copy, device, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(copy));
    };
    for (int turn = 0; turn < 4; ++turn) {
        upload(block, host);
        upload(other, host);
    }
    show(block);
    REQUIRE(cudaMemcpy(block + 1, host, bytes / 2, cudaMemcpyHostToDevice)); /* overlaps */
    host[0] = 5;
    upload(other, host);
    show(other);
    host[0] = -1;
    upload(block, host);
    show(block);
    start_fill(block, 3);
    upload(block, host);
    REQUIRE(cudaMemsetAsync(block, 1, 16));
    upload(block, host);
    show(block);
    upload(block, host);
    REQUIRE(cudaMemcpyAsync(block, other, 16, cudaMemcpyDeviceToDevice));
    upload(block, host);
    show(block);
}

/* The rows of a box are further apart than its bytes would reach. */
void rows_lie_apart()
{
    int *host = on_host(), *block = on_device(), *result = on_host();
    for (int row = 0; row < 4; ++row) {
        start_fill(block, row);
        REQUIRE(cudaMemcpy(host + row * count / 4, block, bytes / 4, cudaMemcpyDeviceToHost));
    }
    REQUIRE(cudaMemcpy2D(block, 64, host, bytes / 4, 64, 4, cudaMemcpyHostToDevice));
    REQUIRE(cudaMemcpy(result, block, bytes, cudaMemcpyDeviceToHost));
    std::printf("%d %d %d %d\n", result[0], result[16], result[32], result[48]);
}

} // namespace

#endif
