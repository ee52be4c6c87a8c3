/* Threads that call the driver and allocate at once, in a collector that watches no memory; the Python side checks the
 * file. Built with ThreadSanitizer by test_threads.py. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host_blocks.h"
#include "kernel_name.h"
#include "kernel_names.h"
#include "modes.h"
#include "stand_in_driver.h"

typedef int (*destroy)(uint64_t);

enum { THREADS = 4, TURNS = 1000, CONTEXT_TURNS = 100, BLOCK = 256, DEPTHS = 16, KERNELS = 256 };

/* Where threads stay in the end: a thread that ends would run libunwind's destructor of its variables, which takes a
 * lock when ThreadSanitizer has forgotten the thread. */
static pthread_barrier_t done;

static char device[THREADS][BLOCK]; /* each thread has its own */

static struct {
    synchronize sync;
    destroy end;
    download down;
    upload up;
    launch kernel;
} driver;

static int driver_destroy(uint64_t context)
{
    (void)context;
    return 0;
}

static int driver_query(uint64_t object)
{
    (void)object;
    return 0;
}

static int driver_elapsed(float *milliseconds, uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    *milliseconds = 0.25F;
    return 0;
}

static int driver_name(const char **name, uint64_t kernel)
{
    *name = kernel % 2 == 0 ? "even" : "odd";
    return 0;
}

/* Five operations, at a depth that gives each a stack of its own. */
static __attribute__((noinline)) void turn(char *host, char *there, int number, int depth)
{
    if (depth > 0) {
        turn(host, there, number, depth - 1);
        __asm__ volatile("");
        return;
    }
    uint32_t known;
    const uint64_t frames[1] = {(uint64_t)turn};
    ffm_host_blocks_allocated((uint64_t)host, BLOCK, FFM_ALLOCATOR_MALLOC, frames, 1);
    memset(host, number, BLOCK);
    assert(driver.up((uint64_t)there, host, BLOCK) == 0);
    assert(driver.kernel(1 + (uint64_t)(number % KERNELS), 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL) == 0);
    assert(driver.sync() == 0);
    assert(driver.down(host, (uint64_t)there, BLOCK) == 0);
    if (ffm_host_blocks_forget((uint64_t)host, &known))
        ffm_host_blocks_released(known, FFM_ALLOCATOR_FREE, frames, 1);
}

static void *work(void *there)
{
    char *host = malloc(BLOCK);
    for (int number = 0; number < TURNS; number++) {
        turn(host, there, number, number % DEPTHS);
        if (number % CONTEXT_TURNS == 0)
            assert(driver.end(1) == 0);
    }
    free(host);
    pthread_barrier_wait(&done);
    pause();
    return NULL;
}

int main(int count, char **arguments)
{
    assert(count == 2);
    const uint32_t mode = FFM_MODE_CONTENTS | FFM_MODE_GPU_TIMES | FFM_MODE_HOST | FFM_MODE_NAMES | FFM_MODE_LIVES;
    assert(ffm_collector_open(arguments[1], mode, NULL) == 0);
    ffm_kernel_name_ask((void *)driver_name, NULL);
    hook("cuEventCreate", (void *)driver_create_event);
    hook("cuEventRecord", (void *)driver_record_event);
    hook("cuEventQuery", (void *)driver_query);
    hook("cuStreamQuery", (void *)driver_query);
    hook("cuEventElapsedTime", (void *)driver_elapsed);
    driver.sync = (synchronize)hook("cuCtxSynchronize", (void *)driver_synchronize);
    driver.end = (destroy)hook("cuCtxDestroy_v2", (void *)driver_destroy);
    driver.down = (download)hook("cuMemcpyDtoH_v2", (void *)driver_download);
    driver.up = (upload)hook("cuMemcpyHtoD_v2", (void *)driver_upload);
    driver.kernel = (launch)hook("cuLaunchKernel", (void *)driver_launch);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert(pthread_create(&thread, NULL, work, device[i]) == 0);
    }
    pthread_barrier_wait(&done);
    _exit(0);
}
