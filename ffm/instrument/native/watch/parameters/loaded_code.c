#include "loaded_code.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "contexts.h"
#include "kernel.h"
#include "kernel_name.h"
#include "machine_code.h"
#include "pageable.h"

enum { MOST_IMAGES = 1 << 16, LARGEST = 1 << 30, HEADER = 64 };

/* A kernel, followed by a bit for each byte of its parameters that it reads. */
typedef struct {
    XXH128_hash_t name;
    uint32_t bytes;
    uint32_t size; /* with the bits */
} known_kernel;

/* Code that is loaded under a handle, and its kernels one behind the other. */
typedef struct {
    uint64_t handle;
    char *kernels;
    size_t used, room;
} known_image;

typedef int (*owner_function)(uint64_t *, uint64_t);

static owner_function module_of, library_of;

static struct {
    pthread_mutex_t lock;
    known_image *images;
    uint32_t count;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_loaded_code_ask(void *module_of_function, void *library_of_kernel)
{
    module_of = (owner_function)(uintptr_t)module_of_function;
    library_of = (owner_function)(uintptr_t)library_of_kernel;
}

static void *pages(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* By the kernel, which refuses what is not mapped. */
static bool copy(void *to, uint64_t from, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    const uint64_t arguments[6] = {(uint64_t)getpid(), (uint64_t)&here, 1, (uint64_t)&there, 1, 0};
    return ffm_kernel_call(SYS_process_vm_readv, arguments) == (int64_t)bytes;
}

static void keep(const ffm_kernel_code *code, void *context)
{
    known_image *image = context;
    const size_t bits = (code->bytes + 7) / 8, align = sizeof(uint64_t);
    const size_t size = (sizeof(known_kernel) + bits + align - 1) / align * align;
    if (size > image->room - image->used)
        return;
    const known_kernel kernel = {XXH3_128bits(code->name, strlen(code->name)), code->bytes, (uint32_t)size};
    memcpy(image->kernels + image->used, &kernel, sizeof kernel);
    memcpy(image->kernels + image->used + sizeof kernel, code->read, bits);
    image->used += size;
}

/* The kernels of an image take less than the image, whose sections have a header for each, and its parameters. */
static void examine(uint64_t address, known_image *image)
{
    uint8_t header[HEADER];
    const size_t bytes = copy(header, address, sizeof header) ? ffm_machine_code_bytes(header, sizeof header) : 0;
    uint8_t *code = bytes == 0 || bytes > LARGEST ? NULL : pages(bytes);
    if (code == NULL)
        return;
    image->kernels = copy(code, address, bytes) ? pages(bytes) : NULL;
    if (image->kernels != NULL) {
        image->room = bytes;
        ffm_machine_code_kernels(code, bytes, keep, image);
    }
    munmap(code, bytes);
    if (image->kernels == NULL)
        return;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = (image->used + page - 1) / page * page;
    const size_t whole = (image->room + page - 1) / page * page;
    if (kept < whole)
        munmap(image->kernels + kept, whole - kept);
    image->room = kept;
}

/* Locked. */
static void forget(uint64_t handle)
{
    for (uint32_t i = loaded.count; i > 0; i--) {
        known_image *image = &loaded.images[i - 1];
        if (image->handle != handle)
            continue;
        if (image->room != 0)
            munmap(image->kernels, image->room);
        *image = loaded.images[--loaded.count];
    }
}

void ffm_loaded_code_before(const ffm_function *function, const uint64_t *arguments)
{
    const bool unloads = function->effect == FFM_EFFECT_UNLOAD_CODE, ends = ffm_context_ends(function);
    if (!unloads && !ends)
        return;
    pthread_mutex_lock(&loaded.lock);
    if (unloads)
        forget(arguments[function->handle]);
    while (ends && loaded.count != 0) /* with a context, its code is gone */
        forget(loaded.images[0].handle);
    pthread_mutex_unlock(&loaded.lock);
}

void ffm_loaded_code_after(const ffm_function *function, const uint64_t *arguments, uint32_t result)
{
    if (function->effect != FFM_EFFECT_LOAD_CODE || result != CUDA_SUCCESS || !ffm_pageable_used())
        return;
    known_image image = {.handle = 0};
    memcpy(&image.handle, (const void *)arguments[function->result], sizeof image.handle);
    if (function->source >= 0)
        examine(arguments[function->source], &image);
    pthread_mutex_lock(&loaded.lock);
    forget(image.handle); /* which code had that was unloaded unseen */
    if (loaded.images == NULL)
        loaded.images = pages(MOST_IMAGES * sizeof *loaded.images);
    const bool fits = loaded.images != NULL && loaded.count < MOST_IMAGES;
    if (fits && image.used != 0)
        loaded.images[loaded.count++] = image;
    pthread_mutex_unlock(&loaded.lock);
    if (!fits && image.room != 0)
        munmap(image.kernels, image.room);
}

static bool ignores(const char *kernel, uint64_t offset, uint32_t bytes, uint32_t all)
{
    for (uint64_t place = offset; place < offset + bytes && place < all; place++)
        if ((kernel[sizeof(known_kernel) + place / 8] & 1 << place % 8) == 0)
            return true;
    return false;
}

/* Locked. No kernel of that name in the image may read all of the bytes. */
static bool image_ignores(const known_image *image, XXH128_hash_t name, uint64_t offset, uint32_t bytes)
{
    bool found = false;
    known_kernel kernel;
    for (size_t place = 0; place < image->used; place += kernel.size) {
        memcpy(&kernel, image->kernels + place, sizeof kernel);
        if (!XXH128_isEqual(kernel.name, name))
            continue;
        if (!ignores(image->kernels + place, offset, bytes, kernel.bytes))
            return false;
        found = true;
    }
    return found;
}

static bool owner_ignores(uint64_t owner, XXH128_hash_t name, uint64_t offset, uint32_t bytes)
{
    bool answer = false;
    pthread_mutex_lock(&loaded.lock);
    for (uint32_t i = 0; i < loaded.count; i++)
        if (loaded.images[i].handle == owner)
            answer = image_ignores(&loaded.images[i], name, offset, bytes);
    pthread_mutex_unlock(&loaded.lock);
    return answer;
}

bool ffm_loaded_code_ignores(uint64_t kernel, uint64_t offset, uint32_t bytes)
{
    const owner_function ask[2] = {module_of, library_of};
    const char *called = __atomic_load_n(&loaded.count, __ATOMIC_RELAXED) == 0 ? NULL : ffm_name_of_kernel(kernel);
    if (called == NULL)
        return false;
    const XXH128_hash_t name = XXH3_128bits(called, strlen(called));
    for (int i = 0; i < 2; i++) {
        uint64_t owner = 0;
        if (ask[i] != NULL && ask[i](&owner, kernel) == CUDA_SUCCESS && owner_ignores(owner, name, offset, bytes))
            return true;
    }
    return false;
}

void ffm_loaded_code_after_fork(void)
{
    pthread_mutex_init(&loaded.lock, NULL);
}
