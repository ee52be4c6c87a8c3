/* The use of the GPU. */
#define _GNU_SOURCE
#include "bad.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFINE(name) typeof(name) *p_##name;
DRIVER(DEFINE)

enum { WORDS = 1024, TURNS = 5 };

void *library;

void check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        printf("%s: %d\n", call, (int)result);
        fflush(stdout);
        _exit(99);
    }
}

void load(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(98);
    }
#define FIND(name) p_##name = (typeof(p_##name))dlsym(library, #name);
    DRIVER(FIND)
}

CUcontext context;

void begin(void)
{
    if (library == NULL)
        load();
    CHECK(cuInit, 0);
    CHECK(cuDevicePrimaryCtxRetain, &context, 0);
    CHECK(cuCtxSetCurrent, context);
}

/* Makes TURNS waits of its own: their number is what a measurement must have seen. */
void use_gpu(void)
{
    static __thread int host[WORDS];
    CUdeviceptr device;
    CUcontext current = NULL;
    if (p_cuInit == NULL || (p_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == NULL))
        begin();
    CHECK(cuMemAlloc_v2, &device, sizeof host);
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK(cuMemcpyHtoD_v2, device, host, sizeof host);
        CHECK(cuCtxSynchronize);
    }
    CHECK(cuMemcpyDtoH_v2, host, device, sizeof host);
    CHECK(cuMemFree_v2, device);
}

void say(const char *word)
{
    if (write(1, word, strlen(word)) < 0)
        return;
}
