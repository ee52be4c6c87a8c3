/* Takes the place of everything around the numbers of stacks: a module at address 0, no Python, and stacks that are
 * counted instead of recorded. Built by test_stacks.py and test_entry_stack.py. */
#include <stdlib.h>

#include "guarded.h"
#include "modules.h"
#include "python_frames.h"
#include "sink.h"
#include "stacks.h"
#include "unwinding.h"

static void *reserved;
static uint32_t of_kind;
uint64_t recorded, recorded_frames;
bool takes = true;
uint32_t generation = 1;
bool ffm_python_readable;

void *ffm_sink_reserve(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes)
{
    (void)stream, (void)thread;
    if (!takes)
        return NULL;
    free(reserved);
    of_kind = kind;
    return reserved = malloc(bytes);
}

void ffm_sink_commit(ffm_stream *stream, size_t bytes)
{
    (void)bytes;
    stream->written++;
    recorded += of_kind == FFM_CHUNK_STACKS;
    recorded_frames += of_kind == FFM_CHUNK_FRAMES;
}

void ffm_sink_release(ffm_stream *stream)
{
    (void)stream;
}

uint32_t ffm_modules_generation(void)
{
    return generation;
}

ffm_module_place ffm_module_of(uint64_t address)
{
    (void)address;
    return (ffm_module_place){.number = 0, .base = 0};
}

bool ffm_python_is_interpreter(uint64_t module_base)
{
    (void)module_base;
    return false;
}

ffm_python_place ffm_python_place_of(const uint64_t *words)
{
    (void)words;
    return (ffm_python_place){0};
}

uint32_t ffm_python_walk(uint64_t *words, bool *truncated)
{
    (void)words, (void)truncated;
    return 0;
}

bool ffm_guarded_readable(uint64_t start, uint64_t end)
{
    return start < end;
}

void ffm_unwinding_begin(void) {}

void ffm_unwinding_end(void) {}
