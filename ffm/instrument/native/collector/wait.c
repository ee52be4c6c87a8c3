/* The driver's internal wait functions. */
#include <stdbool.h>
#include <stddef.h>

#include "callbacks.h"
#include "calls.h"
#include "clock.h"
#include "collector.h"
#include "detached.h"
#include "invocation.h"
#include "modes.h"
#include "portion.h"
#include "stacks.h"
#include "thread.h"
#include "watch.h"

/* A wait under no public call: a library used the driver's private interface, or stage 1 hooks nothing else. */
static void record_private(ffm_thread *thread, uint64_t end, uint64_t wait)
{
    const ffm_operation operation = {
        .start = end - wait,
        .duration = wait,
        .wait = wait,
        .waits = 1,
        .stack = thread->wait_stack,
        .probe = thread->wait_probe,
        .function = FFM_FUNCTION_PRIVATE,
        .flags = (uint16_t)(FFM_OPERATION_PRIVATE | (thread->wait_truncated ? FFM_OPERATION_TRUNCATED : 0)),
        .thread_id = thread->kernel_id};
    ffm_record_operation(&operation, thread);
}

static void begin(const ffm_registers *registers)
{
    if (ffm_detached())
        return;
    uint64_t entered = ffm_now();
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->wait_depth++ != 0)
        return;
    thread->wait_passes =
        thread->depth == 0 && thread->bypass == 0 && ffm_portion_limited() && !ffm_portion_takes_private(thread);
    if (thread->depth == 0 && thread->bypass == 0 && !thread->wait_passes) {
        thread->wait_stack = ffm_stack_at_entry(registers, NULL, &thread->wait_truncated);
        thread->wait_start = ffm_now();
        thread->wait_probe = (uint32_t)(thread->wait_start - entered) + thread->probe_after;
        thread->probe_after = 0;
    } else {
        thread->wait_start = entered;
    }
}

static void end(void)
{
    uint64_t now = ffm_now();
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->wait_depth == 0 || --thread->wait_depth != 0)
        return;
    uint64_t wait = now - thread->wait_start;
    if (thread->depth != 0) {
        if (thread->waits++ == 0)
            thread->first_wait = thread->wait_start;
        thread->wait += wait;
    } else if (thread->bypass == 0 && !thread->wait_passes) {
        record_private(thread, now, wait);
        if (ffm_call_mode() & FFM_MODE_WATCH)
            ffm_watch_private_wait(thread);
        if (ffm_portion_limited())
            ffm_portion_recorded();
    }
}

void ffm_collector_wait_enter(void *invocation)
{
    const ffm_registers registers = ffm_registers_of(((const gum_invocation *)invocation)->cpu_context);
    begin(&registers);
}

void ffm_collector_wait_leave(void *invocation)
{
    (void)invocation;
    end();
}

/* Wrappers for wait functions. Their prototypes are unknown, and their callers were compiled together with them, so may
 * count on any register that they do not change. A wrapper therefore leaves the general and SSE registers as they are,
 * and hands on as many words of the stack as functions of the driver may have. Its frame is a usual one, so an unwinder
 * finds the way through it. */
#define WRAPPERS 8
#define STACK_WORDS 16

static struct {
    void *original;
    uint64_t address;
} wrapped[WRAPPERS];

extern const char ffm_wait_wrappers[] __attribute__((visibility("hidden")));

enum { WRAPPER_BYTES = 16 };

void *ffm_collector_wait_wrapper(uint32_t place)
{
    return place < WRAPPERS ? (void *)(ffm_wait_wrappers + (size_t)place * WRAPPER_BYTES) : NULL;
}

void ffm_collector_wait_bind(uint32_t place, void *address, void *original)
{
    wrapped[place].address = (uint64_t)address;
    wrapped[place].original = original;
}

/* Called by the wrapper at a place. Returns the code that runs the function. */
__attribute__((used)) static void *begin_wrapped(uint64_t place, ffm_registers *registers)
{
    registers->instruction = wrapped[place].address;
    begin(registers);
    return wrapped[place].original;
}

__attribute__((used)) static void end_wrapped(void)
{
    end();
}

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)
#define COUNT_OF_WRAPPERS TEXT(WRAPPERS)
#define COUNT_OF_WORDS TEXT(STACK_WORDS)

#define FOR_VECTOR_REGISTERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define SAVE_VECTOR(n) "movaps %xmm" #n ", 0x80 + 16 * " #n "(%rsp)\n"
#define LOAD_VECTOR(n) "movaps 0x80 + 16 * " #n "(%rsp), %xmm" #n "\n"

#define SAVE                                                                                                           \
    "movq %rax, 0x40(%rsp)\n movq %rcx, 0x48(%rsp)\n movq %rdx, 0x50(%rsp)\n movq %rsi, 0x58(%rsp)\n"                  \
    "movq %rdi, 0x60(%rsp)\n movq %r8, 0x68(%rsp)\n movq %r9, 0x70(%rsp)\n movq %r10, 0x78(%rsp)\n"                    \
    "movq %r11, 0x180(%rsp)\n" FOR_VECTOR_REGISTERS(SAVE_VECTOR)
#define LOAD                                                                                                           \
    FOR_VECTOR_REGISTERS(LOAD_VECTOR)                                                                                  \
    "movq 0x40(%rsp), %rax\n movq 0x48(%rsp), %rcx\n movq 0x50(%rsp), %rdx\n movq 0x58(%rsp), %rsi\n"                  \
    "movq 0x60(%rsp), %rdi\n movq 0x68(%rsp), %r8\n movq 0x70(%rsp), %r9\n movq 0x78(%rsp), %r10\n"                    \
    "movq 0x180(%rsp), %r11\n"

_Static_assert(offsetof(ffm_registers, stack) == 0x08 && offsetof(ffm_registers, frame) == 0x10 &&
                   offsetof(ffm_registers, rbx) == 0x18 && offsetof(ffm_registers, r12) == 0x20 &&
                   offsetof(ffm_registers, r15) == 0x38 && sizeof(ffm_registers) == 0x40,
               "the wrappers lay them out like this");

/* From %rsp on: ffm_registers, other registers, and at 0x188 the code that runs the function. Below %rbp is the
 * wrapper's place; above it are the address to which it returns, and the function's words on the stack. */
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".hidden ffm_wait_wrappers\n"
        ".globl ffm_wait_wrappers\n"
        ".type ffm_wait_wrappers, @function\n"
        "ffm_wait_wrappers:\n"
        ".cfi_startproc\n"
        ".set place, 0\n"
        ".rept " COUNT_OF_WRAPPERS "\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "pushq $place\n"
        "jmp 1f\n"
        ".p2align 4\n"
        ".cfi_def_cfa %rsp, 8\n"
        ".cfi_restore %rbp\n"
        ".set place, place + 1\n"
        ".endr\n"
        "1:\n"
        ".cfi_def_cfa %rbp, 16\n"
        ".cfi_offset %rbp, -16\n"
        "subq $0x190, %rsp\n"
        "andq $-16, %rsp\n" SAVE "leaq 8(%rbp), %rax\n movq %rax, 0x08(%rsp)\n"
        "movq (%rbp), %rax\n movq %rax, 0x10(%rsp)\n"
        "movq %rbx, 0x18(%rsp)\n movq %r12, 0x20(%rsp)\n movq %r13, 0x28(%rsp)\n"
        "movq %r14, 0x30(%rsp)\n movq %r15, 0x38(%rsp)\n"
        "movq -8(%rbp), %rdi\n"
        "movq %rsp, %rsi\n"
        "call begin_wrapped\n"
        "movq %rax, 0x188(%rsp)\n" LOAD ".set word, 8 + 8 * " COUNT_OF_WORDS "\n"
        ".rept " COUNT_OF_WORDS "\n"
        "pushq word(%rbp)\n"
        ".set word, word - 8\n"
        ".endr\n"
        "call *0x188 + 8 * " COUNT_OF_WORDS "(%rsp)\n"
        "leaq 8 * " COUNT_OF_WORDS "(%rsp), %rsp\n" SAVE "call end_wrapped\n" LOAD "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        ".cfi_restore %rbp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ffm_wait_wrappers, . - ffm_wait_wrappers\n"
        ".popsection\n");
