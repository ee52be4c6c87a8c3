/* Corrections without Frida, on the virtual GPU: calls their wrappers directly, and checks what the program receives.
 * Built with sanitizers by test_correction.py.
 *
 * A child records the stacks of its calls, plans to correct all of them, and ends. The parent makes the same calls from
 * the same places, corrected, in several threads at once. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bindings.h"
#include "bypasses.h"
#include "call_handlers.h"
#include "catalogue.h"
#include "counters.h"
#include "plan.h"
#include "remedy.h"
#include "stacks.h"
#include "wrappers.h"

typedef int (*function)();

enum { THREADS = 4, ITERATIONS = 100, ROUNDS = 2, WORDS = 5 * 1024, BYTES = WORDS * sizeof(uint32_t), PLANNED = 64 };

/* After the catalogue's rows. */
static const char *const extras[] = {
#define FFM_EXTRA_FUNCTION(purpose, name) [purpose] = #name,
#include "catalogue.inc"
#undef FFM_EXTRA_FUNCTION
};

/* After those. */
static const char *const guarded[] = {
#define BUFFER(name, address, bytes) #name,
#define VECTOR(name) #name,
#define MESSAGES(name, many) #name,
#define STRUCTURE(name) #name,
#define PROCESS(name) #name,
#define SIGNAL(name) #name,
#define OTHER(name) #name,
#include "guarded_functions.def"
};

enum { EXTRAS = sizeof extras / sizeof *extras, GUARDED = sizeof guarded / sizeof *guarded };

static void *driver;
static function allocate, release, upload, download, set, synchronize, stream_create, stream_destroy,
    stream_synchronize, upload_later, own_upload_later, own_synchronize, event_create, event_destroy, event_record,
    event_synchronize, context_set, context_reset, memory_info;
static uint64_t context;

static ffm_remedy_site planned[PLANNED];
static uint32_t sites;
static pthread_mutex_t planning = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t over;

/* As if the hook were at its second byte. */
static void bind(uint32_t index, char *code)
{
    if (code != NULL)
        ffm_remedy_bind(index, code + 1, code);
}

static void bind_all(void)
{
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++)
        bind(i, dlsym(driver, ffm_catalogue[i].name));
    for (uint32_t i = 0; i < EXTRAS; i++)
        bind(FFM_FUNCTION_COUNT + i, dlsym(driver, extras[i]));
    for (uint32_t i = 0; i < GUARDED; i++)
        bind(FFM_FUNCTION_COUNT + EXTRAS + i, dlsym(RTLD_DEFAULT, guarded[i]));
}

static uint32_t index_of(const char *name)
{
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++)
        if (strcmp(ffm_catalogue[i].name, name) == 0)
            return i;
    fprintf(stderr, "the catalogue has no %s\n", name);
    abort();
}

static function hooked(const char *name)
{
    return (function)ffm_remedy_wrapper(index_of(name));
}

/* One that the catalogue does not have. */
static function extra(const char *name)
{
    for (uint32_t i = 0; i < EXTRAS; i++)
        if (strcmp(extras[i], name) == 0)
            return (function)ffm_remedy_wrapper(FFM_FUNCTION_COUNT + i);
    fprintf(stderr, "there is no %s\n", name);
    abort();
}

static void hook_all(void)
{
    allocate = hooked("cuMemAlloc_v2");
    release = hooked("cuMemFree_v2");
    upload = hooked("cuMemcpyHtoD_v2");
    upload_later = hooked("cuMemcpyHtoDAsync_v2");
    own_upload_later = hooked("cuMemcpyHtoDAsync_v2_ptsz");
    own_synchronize = hooked("cuStreamSynchronize_ptsz");
    download = hooked("cuMemcpyDtoH_v2");
    set = hooked("cuMemsetD32_v2");
    synchronize = hooked("cuCtxSynchronize");
    stream_create = hooked("cuStreamCreate");
    stream_destroy = hooked("cuStreamDestroy_v2");
    stream_synchronize = hooked("cuStreamSynchronize");
    event_create = hooked("cuEventCreate");
    event_destroy = hooked("cuEventDestroy_v2");
    event_record = hooked("cuEventRecord");
    event_synchronize = hooked("cuEventSynchronize");
    context_set = hooked("cuCtxSetCurrent");
    context_reset = hooked("cuDevicePrimaryCtxReset_v2");
    memory_info = extra("cuMemGetInfo_v2");
}

/* In place of bypasses.c: a sanitizer makes system calls that no guard sees, but none with this memory. */
bool ffm_bypasses_loaded(void)
{
    return false;
}

static uint32_t *host_memory(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(start != MAP_FAILED);
    return start;
}

/* What a program does in each iteration, and what it must then see. */
static __attribute__((noinline)) void iterate(uint32_t *source, uint32_t *result, uint32_t seed, int iteration)
{
    uint64_t first = 0, second = 0, stream = 0, event = 0;
    assert(allocate(&first, (size_t)BYTES) == 0);
    assert(allocate(&second, (size_t)BYTES) == 0);
    if (iteration % 3 == 0) /* else the same bytes again */
        for (int i = 0; i < WORDS; i++)
            source[i] = seed + (uint32_t)(iteration * WORDS + i);
    const uint32_t base = seed + (uint32_t)((iteration - iteration % 3) * WORDS);
    assert(upload(first, source, (size_t)BYTES) == 0);
    assert(set(second, seed, (size_t)WORDS) == 0);
    assert(synchronize() == 0);
    assert(download(result, first, (size_t)BYTES) == 0);
    if (iteration % 2 == 0)
        assert(result[WORDS - 1] == base + WORDS - 1);
    assert(download(result, second, (size_t)BYTES) == 0); /* delivered over what may not have been */
    assert(result[0] == seed && result[WORDS - 1] == seed);
    assert(stream_create(&stream, 1) == 0);
    assert(event_create(&event, 0) == 0);
    assert(own_upload_later(second, source, (size_t)BYTES, (uint64_t)0) == 0);
    assert(own_synchronize((uint64_t)0) == 0);
    assert(upload_later(second, source, (size_t)BYTES, stream) == 0);
    assert(event_record(event, stream) == 0);
    assert(event_synchronize(event) == 0);
    assert(stream_synchronize(stream) == 0);
    assert(download(result, second, (size_t)BYTES) == 0);
    assert(release(first) == 0);
    assert(release(second) == 0);
    assert(result[1] == base + 1); /* after the memory that it came from was freed */
    size_t available = 0, total = 0;
    assert(memory_info(&available, &total) == 0 && available > 0 && available <= total);
    assert(stream_destroy(stream) == 0);
    assert(event_destroy(event) == 0);
}

static void *run(void *number)
{
    const uint32_t seed = 1000003U * (uint32_t)(uintptr_t)number;
    uint32_t *source = host_memory(BYTES), *result = host_memory(BYTES);
    assert(context_set(context) == 0);
    for (int i = 0; i < ITERATIONS; i++)
        iterate(source, result, seed, i);
    munmap(source, BYTES);
    munmap(result, BYTES);
    pthread_barrier_wait(&over);
    for (;;) /* ThreadSanitizer cannot follow the end of a thread in which libunwind frees what it kept */
        pause();
}

static void start(void)
{
    uint64_t device = 0;
    assert(((function)dlsym(driver, "cuInit"))(0) == 0);
    assert(((function)dlsym(driver, "cuDeviceGet"))(&device, 0) == 0);
    assert(hooked("cuDevicePrimaryCtxRetain")(&context, (int)device) == 0);
}

static void run_threads(int threads)
{
    pthread_t other;
    for (int i = 0; i < threads; i++)
        pthread_create(&other, NULL, run, (void *)(uintptr_t)(i + 1));
    pthread_barrier_wait(&over);
}

static uint32_t actions_of(const ffm_function *called)
{
    switch (called->kind) {
    case FFM_KIND_ALLOCATION:
        return FFM_REMEDY_POOL_ALLOCATION;
    case FFM_KIND_FREE:
        return FFM_REMEDY_POOL_FREE;
    case FFM_KIND_SYNCHRONIZATION:
        return FFM_REMEDY_SKIP;
    case FFM_KIND_TRANSFER:
        return FFM_REMEDY_ASYNCHRONOUS | FFM_REMEDY_NO_WAIT |
               (called->direction == FFM_DIRECTION_HOST_TO_DEVICE ? FFM_REMEDY_REUSE : 0);
    case FFM_KIND_SET:
        return FFM_REMEDY_NO_WAIT;
    default:
        return 0;
    }
}

/* Stands in place of ffm_call. */
static uint64_t plan_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame)
{
    bool truncated = false;
    const uint8_t *key = ffm_stack_key(ffm_stack_of_caller(frame, ffm_catalogue[index].name, &truncated));
    const uint32_t actions = actions_of(&ffm_catalogue[index]);
    pthread_mutex_lock(&planning);
    uint32_t place = 0;
    while (place < sites && (planned[place].function != index || memcmp(planned[place].key, key, FFM_KEY_BYTES) != 0))
        place++;
    if (place == sites && actions != 0) {
        assert(sites < PLANNED);
        planned[place] = (ffm_remedy_site){.function = index, .actions = actions, .unit = sites++};
        memcpy(planned[place].key, key, FFM_KEY_BYTES);
    }
    pthread_mutex_unlock(&planning);
    return ffm_call_forward(index, arguments);
}

static int by_key(const void *one, const void *other)
{
    return memcmp(((const ffm_remedy_site *)one)->key, ((const ffm_remedy_site *)other)->key, FFM_KEY_BYTES);
}

static void make_plan(const char *path)
{
    ffm_wrappers_lead_to(plan_call);
    ffm_stacks_open();
    bind_all();
    hook_all();
    start();
    pthread_barrier_init(&over, NULL, 1 + 1);
    run_threads(1);
    qsort(planned, sites, sizeof *planned, by_key);
    const ffm_remedy_plan plan = {
        .magic = "FFMSITES", .version = FFM_REMEDY_VERSION, .sites = sites, .memory = (uint64_t)256 << 20};
    FILE *file = fopen(path, "wb");
    assert(file != NULL && fwrite(&plan, sizeof plan, 1, file) == 1);
    assert(fwrite(planned, sizeof *planned, sites, file) == sites && fclose(file) == 0);
}

static int succeed(void)
{
    return 0;
}

static int give_context(uint64_t *given)
{
    *given = 1;
    return 0;
}

/* The virtual GPU lacks these. The first ends its context, unless something refers to that once more. The others have
 * work in an order that corrections do not know, as other GPUs have. */
static void unknown_order_stops_corrections(void)
{
    static const char *const alike[] = {"cuGreenCtxCreate", "cuGreenCtxStreamCreate", "cuCtxFromGreenCtx"};
    const ffm_handler stops = ffm_objects_handler(&ffm_catalogue[index_of("cuCtxEnablePeerAccess")]);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        assert(ffm_objects_handler(&ffm_catalogue[index_of(alike[i])]) == stops);
    bind(index_of("cuCtxAttach"), (char *)(uintptr_t)give_context);
    bind(index_of("cuCtxDetach"), (char *)(uintptr_t)succeed);
    uint64_t given;
    for (int i = 0; i < 2; i++) { /* a context that has ended is referred to no more */
        assert(hooked("cuCtxAttach")(&given, 0) == 0 && hooked("cuCtxDetach")(given) == 0);
        assert(ffm_counters->stopped == 0);
    }
    for (int i = 0; i < 2; i++)
        assert(hooked("cuCtxAttach")(&given, 0) == 0);
    assert(hooked("cuCtxDetach")(given) == 0);
    assert(ffm_counters->stopped != 0);
}

/* arguments: the driver, the plan to write, a folder for counters */
int main(int count, char **arguments)
{
    assert(count == 4);
    driver = dlopen(arguments[1], RTLD_NOW);
    assert(driver != NULL);
    pid_t child = fork();
    if (child == 0) {
        make_plan(arguments[2]);
        _exit(0);
    }
    int status = 0;
    assert(waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "the process that makes the plan ended with status %d\n", status);
        return 1;
    }
    assert(ffm_remedy_open(arguments[3], 0, arguments[2]) == 0);
    bind_all();
    hook_all();
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (int round = 0; round < ROUNDS; round++) {
        start();
        run_threads(THREADS);
        assert(context_reset(0) == 0);
    }
    unknown_order_stops_corrections();
    return 0;
}
