/* Unusual uses of the driver. */
#define _GNU_SOURCE
#include "bad.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

THING(driver_errors)
{
    CUdeviceptr device = 0;
    begin();
    printf("%d", (int)p_cuMemAlloc_v2(&device, (size_t)1 << 60));
    printf(" %d", (int)p_cuMemcpyHtoD_v2(0x1234, &device, 64));
    printf(" %d\n", (int)p_cuMemFree_v2(0x1234));
}
THING(no_context)
{
    begin();
    CHECK(cuCtxSetCurrent, NULL);
    printf("%d\n", (int)p_cuCtxSynchronize());
    CHECK(cuCtxSetCurrent, context);
}
/* A context lives until all who retained it have released it. */
static void release_context(void)
{
    while (p_cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS)
        ;
}
THING(context_ends)
{
    CUdeviceptr device;
    CUstream stream;
    static char *pinned;
    begin();
    CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CHECK(cuMemAlloc_v2, &device, 1 << 20);
    CHECK(cuMemHostAlloc, (void **)&pinned, 1 << 20, 0);
    for (int turn = 0; turn < 8; turn++)
        CHECK(cuMemcpyHtoDAsync_v2, device, pinned, 1 << 20, stream);
    release_context();
}
THING(after_context)
{
    begin();
    release_context();
    printf("%d\n", (int)p_cuCtxSynchronize() != 0);
}
THING(context_again)
{
    context_ends();
    begin();
}
THING(pending_at_end)
{
    static CUdeviceptr device;
    static char *pinned;
    begin();
    CHECK(cuMemAlloc_v2, &device, 1 << 20);
    CHECK(cuMemHostAlloc, (void **)&pinned, 1 << 20, 0);
    for (int turn = 0; turn < 8; turn++)
        CHECK(cuMemcpyHtoDAsync_v2, device, pinned, 1 << 20, 0);
    _exit(0);
}
THING(closes_driver)
{
    if (library == NULL)
        load();
    dlclose(library);
    load();
}
THING(initializes_often)
{
    if (library == NULL)
        load();
    for (int turn = 0; turn < 100; turn++)
        CHECK(cuInit, 0);
}
THING(driver_in_child)
{
    begin();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr device;
        _exit((int)p_cuMemAlloc_v2(&device, 64) == CUDA_SUCCESS ? 0 : 1);
    }
    await_child(child);
}
THING(child_before_driver)
{
    const pid_t child = fork();
    if (child == 0) {
        use_gpu();
        _exit(0);
    }
    await_child(child);
}
THING(nothing) {}
