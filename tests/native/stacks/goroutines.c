/* Takes stacks within C that is called on another stack, as Go's runtime does, in both forms that its code had.
 * Built with the collector's stacks by test_goroutines.py. Prints nothing; exits with 0 when the frames are found. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "known_stacks.h"
#include "stacks.h"
#include "unwinding.h"

/* The goroutine's words that are used, its stack and the thread's. */
struct {
    uint64_t low, end;
} goroutine;
/* Far from each other: an unwinder follows a frame pointer to a place close by. */
enum { APART = 1 << 16 };
static _Alignas(16) uint64_t goroutine_stack[1024], thread_stack[2 * APART];

/* What runtime.asmcgocall is after its call, with the goroutine and the distance at these places. It is no function of
 * any unwind table, and has no frame on the goroutine's stack. `middle` and `outer` are Go functions there: frames that
 * are found by their frame pointers only. Their return addresses are labels. */
#define CALL_ON(name, at_goroutine, at_distance)                                                                       \
    __asm__(".text\n" #name ":\n"                                                                                      \
            "push %rbp\n push %rbx\n push %r12\n"                                                                      \
            "mov %rsp, %r12\n"                                                                                         \
            "mov %rdi, %rsp\n" /* the goroutine's stack */                                                             \
            "xor %ebp, %ebp\n" /* it ends here */                                                                      \
            "call " #name "_outer\n" #name "_ends:\n"                                                                  \
            "mov %r12, %rsp\n"                                                                                         \
            "pop %r12\n pop %rbx\n pop %rbp\n ret\n" #name "_outer:\n"                                                 \
            "push %rbp\n mov %rsp, %rbp\n sub $48, %rsp\n"                                                             \
            "call " #name "_middle\n" #name "_in_outer:\n"                                                             \
            "leave\n ret\n" #name "_middle:\n"                                                                         \
            "push %rbp\n mov %rsp, %rbp\n sub $80, %rsp\n"                                                             \
            "call " #name "_switch\n" #name "_in_middle:\n"                                                            \
            "leave\n ret\n" #name "_switch:\n"                                                                         \
            "mov %rsp, %rdx\n"                                                                                         \
            "lea goroutine(%rip), %rdi\n"                                                                              \
            "mov %rsi, %rsp\n"                                                                                         \
            "sub $64, %rsp\n"                                                                                          \
            "mov %rdi, " #at_goroutine "(%rsp)\n"                                                                      \
            "mov 8(%rdi), %rdi\n"                                                                                      \
            "sub %rdx, %rdi\n"                                                                                         \
            "mov %rdi, " #at_distance "(%rsp)\n"                                                                       \
            "call called\n" #name "_in_switch:\n"                                                                      \
            "mov " #at_goroutine "(%rsp), %rdi\n"                                                                      \
            "mov 8(%rdi), %rsi\n"                                                                                      \
            "sub " #at_distance "(%rsp), %rsi\n"                                                                       \
            "mov %rsi, %rsp\n"                                                                                         \
            "ret\n");                                                                                                  \
    void name(uint64_t *goroutine_from, uint64_t *thread_from);                                                        \
    extern const char name##_in_switch[], name##_in_middle[], name##_in_outer[], name##_ends[]

CALL_ON(with_large_frame, 0x30, 0x28);
CALL_ON(with_small_frame, 8, 0);

static const void *expected[4];
static const char *wrong;

static void compare(const char *way, uint32_t number, bool truncated)
{
    uint64_t frames[16];
    const uint32_t depth = ffm_stack_frames(number, frames, 16);
    uint32_t place = 0;
    while (place < depth && frames[place] != (uint64_t)expected[0])
        place++;
    if (truncated || depth - place != 4 || memcmp(frames + place, expected, sizeof expected) != 0)
        wrong = way;
}

/* A driver call. */
static __attribute__((noinline)) void driver_call(void)
{
    bool truncated;
    const uint64_t *frame = __builtin_frame_address(0);
    uint32_t number = ffm_stack_of_caller(frame, NULL, &truncated);
    compare("as a caller's", number, truncated);
    const ffm_registers caller = {.instruction = frame[1], .stack = (uint64_t)(frame + 2), .frame = frame[0]};
    number = ffm_stack_from(&caller, &truncated);
    compare("from registers", number, truncated);
    ffm_known_stacks known = {0};
    ffm_known_stack_add(&known, (const void *)frame[1], (uint64_t)frame, &caller, 1);
    if (known.added != 0) /* nothing on the thread's stack says which goroutine called */
        wrong = "as a known one";
}

void called(void);
__attribute__((noinline)) void called(void)
{
    volatile int calls = 1;
    driver_call();
    calls--;
}

#define TRY(name)                                                                                                      \
    expected[0] = name##_in_switch, expected[1] = name##_in_middle, expected[2] = name##_in_outer,                     \
    expected[3] = name##_ends, name(&goroutine_stack[1000], &thread_stack[APART])

int main(void)
{
    goroutine.low = (uint64_t)goroutine_stack;
    goroutine.end = (uint64_t)(goroutine_stack + 1024);
    ffm_stacks_open();
    for (int repetition = 0; repetition < 3 && wrong == NULL; repetition++) {
        TRY(with_large_frame);
        TRY(with_small_frame);
    }
    if (wrong != NULL)
        fprintf(stderr, "other frames, taken %s\n", wrong);
    return wrong != NULL;
}
