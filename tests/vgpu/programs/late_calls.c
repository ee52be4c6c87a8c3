/* Calls the driver when a thread's data and the program's are destroyed. `late_calls`: prints OK for each. */
#include <cuda.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static CUcontext context;
static pthread_key_t key;

static void call(const char *where)
{
    CUdeviceptr memory = 0;
    CUcontext current = NULL;
    CUresult result = cuCtxGetCurrent(&current);
    if (result == CUDA_SUCCESS && current != context)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS)
        result = cuMemAlloc(&memory, 64);
    if (result == CUDA_SUCCESS)
        result = cuCtxSynchronize();
    printf("%s: %d\n", where, (int)result);
}

static void end_thread(void *unused)
{
    (void)unused;
    call("thread's data");
}

static void *run(void *unused)
{
    cuCtxSetCurrent(context);
    pthread_setspecific(key, &key);
    return unused;
}

static void check(CUresult result)
{
    if (result != CUDA_SUCCESS)
        exit(2);
}

__attribute__((destructor)) static void end_program(void)
{
    if (context != NULL)
        call("program's data");
}

int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, end_thread);
    check(cuInit(0));
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
    if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return 0;
}
