/* Allocates as the driver does and as a program does, also in functions of the program that the driver calls. Built
 * with the replacements of the allocators by test_host_blocks.py. Exits with 0 if just the program's blocks are
 * recorded when transfers use them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocators.h"
#include "detached.h"
#include "foreign.h"
#include "host_blocks.h"
#include "instruments.h"
#include "python_frames.h"
#include "stacks.h"
#include "unwinding.h"

enum { BYTES = 1 << 16 };

typedef void *(*allocate)(size_t);
typedef void (*release)(void *);
typedef void *(*map)(void *, size_t, int, int, int, off_t);

static struct {
    allocate allocate;
    release release;
    map map;
} call;

bool ffm_detached_flag, ffm_python_readable;

void ffm_unwinding_begin(void) {}

void ffm_unwinding_end(void) {}

bool ffm_unwinding_here(void)
{
    return false;
}

uint32_t ffm_stack_frames(uint32_t stack, uint64_t *frames, uint32_t most)
{
    (void)stack, (void)frames, (void)most;
    return 0;
}

static uint32_t blocks, uses;
extern void (*block_is_recorded)(uint32_t number, uint32_t stack);
extern void (*use_is_recorded)(uint32_t number, uint32_t stack);

static void count_block(uint32_t number, uint32_t stack)
{
    (void)number, (void)stack;
    blocks++;
}

static void count_use(uint32_t number, uint32_t stack)
{
    (void)number, (void)stack;
    uses++;
}

/* The driver's code is what the linker puts into this section. */
#define OF_DRIVER __attribute__((noinline, section("driver")))
extern char __start_driver[], __stop_driver[];

OF_DRIVER static void *driver_allocates(size_t bytes)
{
    void *start = call.allocate(bytes);
    __asm__ volatile("");
    return start;
}

OF_DRIVER static void *driver_maps(void *where, size_t bytes)
{
    const int fixed = where == NULL ? 0 : MAP_FIXED;
    void *start = call.map(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    __asm__ volatile("");
    return start;
}

/* As for a block size that suits a kernel, or a host function. */
OF_DRIVER static void driver_calls_back(void (*function)(void *), void *data)
{
    function(data);
    __asm__ volatile("");
}

OF_DRIVER static void *driver_thread(void *data)
{
    void *const *const called = data;
    driver_calls_back((void (*)(void *))called[0], called[1]);
    return NULL;
}

static void program_allocates(void *start)
{
    *(void **)start = call.allocate(BYTES);
    __asm__ volatile("");
}

static void *program_maps(void)
{
    void *start = call.map(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("");
    return start;
}

/* Whether a transfer that uses this memory records its block and the use, or neither. */
static void expect(const char *what, const void *start, bool recorded)
{
    static uint32_t transfer;
    blocks = uses = 0;
    ffm_host_blocks_used((uint64_t)start + BYTES / 2, ++transfer);
    if (blocks == recorded && uses == recorded)
        return;
    fprintf(stderr, "%s: %u blocks and %u uses are recorded\n", what, blocks, uses);
    exit(1);
}

static void *replaced(const char *name, void *original)
{
    uint32_t place = 0;
    while (strcmp(ffm_allocator_name(place), name) != 0)
        place++;
    ffm_allocator_bind(place, original);
    return ffm_allocator_wrapper(place);
}

static void the_heap(void)
{
    void *start = driver_allocates(BYTES);
    expect("what the driver allocates", start, false);
    call.release(start);
    program_allocates(&start);
    expect("what the program allocates", start, true);
    call.release(start);
    expect("what the program freed", start, false);
    driver_calls_back(program_allocates, &start);
    expect("what the program allocates in a call of the driver", start, true);
    driver_calls_back(call.release, start);
    expect("what the program frees in a call of the driver", start, false);
    pthread_t thread;
    void *called[] = {(void *)program_allocates, &start};
    pthread_create(&thread, NULL, driver_thread, called);
    pthread_join(thread, NULL);
    expect("what the program allocates on a thread of the driver", start, true);
    call.release(start);
}

static void mappings(void)
{
    void *start = driver_maps(NULL, BYTES);
    expect("what the driver maps", start, false);
    munmap(start, BYTES);
    start = program_maps();
    expect("what the program maps", start, true);
    munmap(start, BYTES);
    char *inside = driver_maps((char *)start + BYTES / 4, BYTES / 2);
    expect("what the driver maps where the program had memory", inside - BYTES / 4, false);
    munmap(inside, BYTES / 2);
}

int main(void)
{
    block_is_recorded = count_block;
    use_is_recorded = count_use;
    call.allocate = (allocate)replaced("malloc", (void *)malloc);
    call.release = (release)replaced("free", (void *)free);
    call.map = (map)replaced("mmap", (void *)mmap);
    ffm_foreign_add((uint64_t)__start_driver, (uint64_t)__stop_driver, true);
    the_heap();
    mappings();
    return 0;
}
