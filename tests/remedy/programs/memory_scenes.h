/* Device memory that is freed, and what the driver reports about it. */
#ifndef FFM_TEST_MEMORY_SCENES_H
#define FFM_TEST_MEMORY_SCENES_H

#include "scene.h"

namespace
{

void memory_runs_out()
{
    for (int turn = 0; turn < 3; ++turn) {
        int *first = on_device(20 << 20), *second = on_device(20 << 20);
        REQUIRE(cudaMemset(first, turn, 20 << 20));
        REQUIRE(cudaFree(first));
        REQUIRE(cudaFree(second));
        int *large = on_device(50 << 20);
        REQUIRE(cudaFree(large));
    }
    void *too_large = nullptr;
    std::printf("200 MiB: %s\n", cudaGetErrorName(cudaMalloc(&too_large, 200 << 20)));
}

void sizes_change()
{
    std::size_t at_start, now, total;
    int *kept = on_device();
    REQUIRE(cudaMemGetInfo(&at_start, &total));
    for (int turn = 0; turn < 40; ++turn) {
        int *block = on_device(std::size_t(turn % 7 + 1) * 100'000 - turn * 512);
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%zu\n", at_start - now);
        REQUIRE(cudaFree(block));
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%zu\n", at_start - now);
    }
    REQUIRE(cudaFree(kept));
}

/* No block fits the next request, so that idle ones pile up. */
void sizes_grow()
{
    for (std::size_t turn = 1; turn <= 40; ++turn)
        REQUIRE(cudaFree(on_device(turn << 16)));
}

void sizes_are_told()
{
    auto range =
        reinterpret_cast<CUresult (*)(CUdeviceptr *, std::size_t *, CUdeviceptr)>(driver("cuMemGetAddressRange_v2"));
    for (int size : {100'000, 96'000, 98'000, 99'999}) {
        int *block = on_device(std::size_t(size));
        CUdeviceptr base;
        std::size_t found;
        CUresult result = range(&base, &found, reinterpret_cast<CUdeviceptr>(block) + 1000);
        std::printf("%d: %d %zu %d\n", size, result, found, base == reinterpret_cast<CUdeviceptr>(block));
        REQUIRE(cudaFree(block));
    }
}

void freed_twice()
{
    int *block = on_device();
    REQUIRE(cudaFree(block));
    std::printf("again: %s\n", cudaGetErrorName(cudaFree(block)));
    std::printf("inside: %s\n", cudaGetErrorName(cudaFree(on_device() + 1)));
    std::printf("nothing: %s\n", cudaGetErrorName(cudaFree(nullptr)));
}

void asked_about_when_freed()
{
    auto range =
        reinterpret_cast<CUresult (*)(CUdeviceptr *, std::size_t *, CUdeviceptr)>(driver("cuMemGetAddressRange_v2"));
    auto attribute =
        reinterpret_cast<CUresult (*)(void *, CUpointer_attribute, CUdeviceptr)>(driver("cuPointerGetAttribute"));
    auto share = reinterpret_cast<CUresult (*)(CUipcMemHandle *, CUdeviceptr)>(driver("cuIpcGetMemHandle"));
    const auto address = [](int *block) { return reinterpret_cast<CUdeviceptr>(block); };
    for (int turn = 0; turn < 3; ++turn) {
        int *blocks[] = {on_device(), on_device(), on_device(), on_device()}, *kept = on_device();
        for (int *block : blocks)
            REQUIRE(cudaFree(block));
        cudaPointerAttributes freed, in_use;
        REQUIRE(cudaPointerGetAttributes(&freed, blocks[0] + 1));
        REQUIRE(cudaPointerGetAttributes(&in_use, kept));
        CUdeviceptr base;
        std::size_t found;
        unsigned type;
        CUipcMemHandle handle;
        std::printf("%d %d %d %d %d\n", freed.type, in_use.type, range(&base, &found, address(blocks[1])),
                    attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(blocks[2])),
                    share(&handle, address(blocks[3])));
        REQUIRE(cudaFree(kept));
    }
}

void given_to_others()
{
    auto share = reinterpret_cast<CUresult (*)(CUipcMemHandle *, CUdeviceptr)>(driver("cuIpcGetMemHandle"));
    for (int turn = 0; turn < 3; ++turn) {
        int *block = on_device();
        CUipcMemHandle handle;
        std::printf("%d\n", share(&handle, reinterpret_cast<CUdeviceptr>(block)));
        REQUIRE(cudaFree(block));
    }
}

void starts_again()
{
    for (int turn = 0; turn < 2; ++turn) {
        int *block = on_device(), *host = on_host();
        start_fill(block, turn);
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        REQUIRE(cudaFree(block));
        std::size_t now, total;
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%d %d\n", sum(host), now == total);
        REQUIRE(cudaDeviceReset());
    }
}

void two_contexts()
{
    auto create =
        reinterpret_cast<CUresult (*)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice)>(driver("cuCtxCreate_v4"));
    int *block = on_device();
    CUcontext context;
    std::printf("%d\n", create(&context, nullptr, 0, 0));
    for (int turn = 0; turn < 3; ++turn) {
        int *other = on_device();
        start_fill(other, turn);
        int *host = on_host();
        REQUIRE(cudaMemcpy(host, other, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
        REQUIRE(cudaFree(other));
    }
    (void)block;
}

} // namespace

#endif
