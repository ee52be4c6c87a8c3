/* Takes the stack at the entry of a function from below it, both ways, as a probe that Frida attached would.
 * Built with the collector's stacks by test_entry_stack.py. Prints nothing; exits with 0 when the ways agree. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stacks.h"

ffm_registers registers_at_entry;

/* Saves its registers as they are at its entry, and calls `probe` some way below. The saved callee-saved registers are
 * those that the unwinder may need. */
int hooked(void);
__asm__(".text\n"
        ".type hooked, @function\n"
        "hooked:\n"
        ".cfi_startproc\n"
        "lea hooked(%rip), %rax\n"
        "mov %rax, registers_at_entry(%rip)\n"
        "mov %rsp, registers_at_entry+8(%rip)\n"
        "mov %rbp, registers_at_entry+16(%rip)\n"
        "mov %rbx, registers_at_entry+24(%rip)\n"
        "mov %r12, registers_at_entry+32(%rip)\n"
        "mov %r13, registers_at_entry+40(%rip)\n"
        "mov %r14, registers_at_entry+48(%rip)\n"
        "mov %r15, registers_at_entry+56(%rip)\n"
        "sub $4808, %rsp\n"
        ".cfi_adjust_cfa_offset 4808\n"
        "call probe\n"
        "add $4808, %rsp\n"
        ".cfi_adjust_cfa_offset -4808\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size hooked, . - hooked\n");

/* The linker puts this in front of the unwinder's function with which the slow way begins. */
static int slow_ways;
int __real__ULx86_64_init_local2(unw_cursor_t *cursor, unw_context_t *context, int flag);
int __wrap__ULx86_64_init_local2(unw_cursor_t *cursor, unw_context_t *context, int flag);
int __wrap__ULx86_64_init_local2(unw_cursor_t *cursor, unw_context_t *context, int flag)
{
    slow_ways++;
    return __real__ULx86_64_init_local2(cursor, context, flag);
}

int probe(void);
int probe(void)
{
    bool truncated, truncated_slowly;
    uint32_t fast = ffm_stack_at_entry(&registers_at_entry, NULL, &truncated);
    bool was_fast = slow_ways == 0;
    uint32_t slow = ffm_stack_from(&registers_at_entry, &truncated_slowly);
    slow_ways = 0;
    /* Stacks are interned: equal frames, equal numbers. The number 0 is the empty stack. */
    return was_fast && fast != 0 && fast == slow && truncated == truncated_slowly;
}

__attribute__((noinline)) static int recurse(int depth, size_t room)
{
    volatile char local[room]; /* a frame of unknown size: unwound by its frame pointer */
    local[0] = (char)depth;
    int good = depth == 0 ? hooked() : recurse(depth - 1, room);
    return good && local[0] == (char)depth;
}

int main(void)
{
    ffm_stacks_open();
    for (int deepest = 0; deepest < 250; deepest += 25) /* past FFM_MAX_FRAMES */
        for (size_t room = 16; room < 300; room += 40)
            for (int repetition = 0; repetition < 3; repetition++) /* the unwinder learns frames */
                if (!recurse(deepest, room)) {
                    fprintf(stderr, "no fast way, or another stack, at depth %d with frames of %zu bytes\n", deepest,
                            room);
                    return 1;
                }
    return 0;
}
