/* Call stacks: captured, and interned to small numbers. */
#ifndef FFM_STACKS_H
#define FFM_STACKS_H

#include <stdbool.h>

#include "records.h"
#include "registers.h"

/* Make the empty stack number 0. Call once, before anything else. */
void ffm_stacks_open(void);

/* Make the C library allocate the unwinder's variables of the calling thread. It does so at their first use, by the
 * program's malloc and under the dynamic linker's lock: a signal handler that captures a stack may have interrupted the
 * thread while it holds either. */
void ffm_stack_prepare(void);

/* Number of the calling function's stack, without its innermost `skip` frames (not counting this call's own).
 * `truncated` says whether frames are missing: the stack was deeper than FFM_MAX_FRAMES, or there are so many stacks
 * that it was cut to its inner frames. */
uint32_t ffm_stack_here(int skip, bool *truncated);

/* Number of the stack of a function's caller, for driver calls. `frame` is the function's own, as
 * __builtin_frame_address(0) returns it there: the caller's %rbp, and behind that the address to which it returns.
 * Stacks with different functions of the driver have different numbers and keys, and equal names are one string. */
uint32_t ffm_stack_of_caller(const uint64_t *frame, const char *function, bool *truncated);

/* Number of the stack that starts at the given registers. Slower (two system calls per frame): for signal handlers. */
uint32_t ffm_stack_from(const ffm_registers *registers, bool *truncated);

/* The return addresses themselves, found in the same way: innermost first, at most `room`. The first one is the place
 * of the code itself. Only between ffm_unwinding_begin and ffm_unwinding_end. */
uint32_t ffm_stack_walk(const ffm_registers *registers, uint64_t *frames, uint32_t room, bool *truncated);

/* The same as ffm_stack_from, for registers at the entry of a function whose frames are still on the calling thread's
 * stack: for attached probes, from which an unwinder cannot find the way out by itself. `function` is as for
 * ffm_stack_of_caller, or NULL. */
uint32_t ffm_stack_at_entry(const ffm_registers *registers, const char *function, bool *truncated);

/* Number of a stack whose native frames were captured before, innermost first. It has no Python functions. */
uint32_t ffm_stack_number(const uint64_t *frames, uint32_t depth);

/* Key of a stack by its number; the same in every run. */
const uint8_t *ffm_stack_key(uint32_t number);

/* The `room` innermost frames of a stack by its number, innermost first; returns how many there are. */
uint32_t ffm_stack_frames(uint32_t number, uint64_t *frames, uint32_t room);

/* In a forked child: record stacks again as they occur. */
void ffm_stacks_after_fork(void);

#endif
