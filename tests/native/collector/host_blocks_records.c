/* Takes the collector's place around host_blocks.c: what it records is called back. Built by test_host_blocks.py. */
#include "sink.h"
#include "stacks.h"

void (*block_is_recorded)(uint32_t number, uint32_t stack);
void (*use_is_recorded)(uint32_t number, uint32_t stack);

static union {
    ffm_host_block block;
    ffm_host_use use;
    ffm_host_release release;
} reserved;
static uint32_t reserved_kind;

void *ffm_sink_reserve(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes)
{
    (void)stream, (void)thread, (void)bytes;
    reserved_kind = kind;
    return &reserved;
}

void ffm_sink_commit(ffm_stream *stream, size_t bytes)
{
    (void)stream, (void)bytes;
    if (reserved_kind == FFM_CHUNK_HOST_BLOCKS)
        block_is_recorded(reserved.block.number, reserved.block.stack);
    else if (reserved_kind == FFM_CHUNK_HOST_USES)
        use_is_recorded(reserved.use.number, reserved.use.stack);
}

void ffm_sink_release(ffm_stream *stream)
{
    (void)stream;
}

/* A stack's number is its only frame. */
uint32_t ffm_stack_number(const uint64_t *frames, uint32_t depth)
{
    return depth == 0 ? 0 : (uint32_t)frames[0];
}
