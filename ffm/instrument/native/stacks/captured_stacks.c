#include "stacks.h"

#include "goroutines.h"
#include "numbered_stacks.h"
#include "unwind_from.h"
#include "unwinding.h"

/* The thread that loads this may hold the dynamic linker's lock later, for which another one waits. */
__attribute__((constructor)) void ffm_stack_prepare(void)
{
    void *frame;
    ffm_unwinding_begin();
    unw_backtrace(&frame, 1);
    ffm_unwinding_end();
}

uint32_t ffm_stack_here(int skip, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    int depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    *truncated = depth == FFM_MAX_FRAMES;
    skip++; /* this function */
    if (depth < skip)
        depth = skip;
    uint32_t number = ffm_stack_intern(frames + skip, (uint32_t)(depth - skip), NULL, truncated);
    ffm_unwinding_end();
    return number;
}

uint32_t ffm_stack_walk(const ffm_registers *registers, uint64_t *frames, uint32_t room, bool *truncated)
{
    unw_context_t context;
    unw_cursor_t cursor;
    uint32_t depth = 0;
    *truncated = false;
    if (!ffm_unwind_from(&cursor, &context, registers))
        return 0;
    do {
        unw_word_t address;
        if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0 || address == 0)
            break;
        frames[depth++] = address;
        *truncated = depth == room;
    } while (!*truncated && unw_step(&cursor) > 0);
    if (!*truncated) {
        depth = ffm_goroutine_frames(registers, frames, depth, room);
        *truncated = depth == room;
    }
    return depth;
}

static uint32_t stack_from(const ffm_registers *registers, const char *function, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    const uint32_t depth = ffm_stack_walk(registers, frames, FFM_MAX_FRAMES, truncated);
    uint32_t number = ffm_stack_intern(frames, depth, function, truncated);
    ffm_unwinding_end();
    return number;
}

uint32_t ffm_stack_from(const ffm_registers *registers, bool *truncated)
{
    return stack_from(registers, NULL, truncated);
}

/* unw_backtrace as if called by the function whose registers at its entry are given; 0 if that is not possible.
 *
 * unw_backtrace caches frames and makes no system calls, but starts where it is called. So it is called from a frame of
 * 8192 bytes that ends at the hooked function's return address, below all frames in use (Frida's and ours, some 4 KB),
 * and the unwind table describes just that frame. */
int ffm_backtrace_at_entry(void **frames, int room, uint64_t stack, uint64_t frame);

__asm__(".pushsection .text\n"
        ".hidden ffm_backtrace_at_entry\n"
        ".globl ffm_backtrace_at_entry\n"
        ".type ffm_backtrace_at_entry, @function\n"
        "ffm_backtrace_at_entry:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbp, 0\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbx, 0\n"
        "mov %rsp, %rbx\n"
        ".cfi_def_cfa_register %rbx\n"
        "xor %eax, %eax\n"
        "lea 8 - 8192(%rdx), %rdx\n"
        "test $15, %dl\n" /* calls want the stack aligned */
        "jnz 1f\n"
        "cmp %rsp, %rdx\n" /* frames in use would be overwritten */
        "ja 1f\n"
        "mov %rdx, %rsp\n"
        "mov %rcx, %rbp\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa %rsp, 8192\n"
        ".cfi_same_value %rbp\n"
        ".cfi_undefined %rbx\n"
        "call unw_backtrace@PLT\n"
        ".cfi_restore_state\n"
        "1: mov %rbx, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbx\n"
        "pop %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ffm_backtrace_at_entry, . - ffm_backtrace_at_entry\n"
        ".popsection\n");

uint32_t ffm_stack_at_entry(const ffm_registers *registers, const char *function, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    uint32_t number;
    ffm_unwinding_begin();
    int depth = ffm_backtrace_at_entry((void **)frames, FFM_MAX_FRAMES, registers->stack, registers->frame);
    if (depth < 2) {
        number = stack_from(registers, function, truncated);
    } else {
        frames[0] = registers->instruction; /* instead of the frame of ffm_backtrace_at_entry */
        const uint32_t all = ffm_goroutine_frames(registers, frames, (uint32_t)depth, FFM_MAX_FRAMES);
        *truncated = all == FFM_MAX_FRAMES;
        number = ffm_stack_intern(frames, all, function, truncated);
    }
    ffm_unwinding_end();
    return number;
}

/* Where the caller's frame is in a stack that was captured within the function; its depth if it is not there. */
static uint32_t place_of(uint64_t caller, const uint64_t *frames, uint32_t depth)
{
    uint32_t place = 0;
    while (place < depth && frames[place] != caller)
        place++;
    return place;
}

/* The frames in between are ours and tell nothing: they are not unwound. */
uint32_t ffm_stack_of_caller(const uint64_t *frame, const char *function, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    int depth = ffm_backtrace_at_entry((void **)frames, FFM_MAX_FRAMES, (uint64_t)(frame + 1), frame[0]);
    if (__builtin_expect(depth < 2, 0))
        depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    const ffm_registers caller = {.instruction = frame[1], .stack = (uint64_t)(frame + 2), .frame = frame[0]};
    const uint32_t all = ffm_goroutine_frames(&caller, frames, (uint32_t)depth, FFM_MAX_FRAMES);
    *truncated = all == FFM_MAX_FRAMES;
    const uint32_t place = place_of(frame[1], frames, all);
    uint32_t number = ffm_stack_intern(frames + place, all - place, function, truncated);
    ffm_unwinding_end();
    return number;
}
