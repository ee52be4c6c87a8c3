/* Takes stacks again and again, as those that are known and by unwinding each. Built with the collector's stacks by
 * test_repeated_stacks.py. Prints nothing; exits with 0 when both are always the same, and known ones are not unwound.
 *
 * Functions with frames of unknown size, found by their frame pointers, are above such of known size, some with a frame
 * that is aligned, some in a handler of a signal, in random turns: so that equal places of the stack belong to
 * different ways, and hold what earlier ones left there. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repeated_stacks.h"
#include "stacks.h"

enum { KINDS = 6, PLAIN_KINDS = 4, DEEPEST = 8, WAYS = 400, TURNS = 40000, AT_ONCE = 64, FOR_EACH = 1024 };

extern uint32_t generation;

static ffm_repeated_stacks known;
static uint64_t wrong, unwound;

/* One place may call several functions of the driver. */
static const char *function;

/* The linker puts this in front of the unwinder's function. */
int __real_unw_backtrace(void **frames, int room);
int __wrap_unw_backtrace(void **frames, int room);
int __wrap_unw_backtrace(void **frames, int room)
{
    unwound++;
    return __real_unw_backtrace(frames, room);
}

static bool was_unwound;
static uint32_t found;

__attribute__((noinline)) static void probe(void)
{
    const uint64_t *frame = __builtin_frame_address(0);
    const uint64_t before = unwound;
    bool truncated, truncated_as_well;
    const uint32_t number = ffm_repeated_stack_of_caller(&known, frame, function, &truncated);
    was_unwound = unwound != before;
    found = number;
    const uint32_t other = ffm_stack_of_caller(frame, function, &truncated_as_well);
    wrong += number == 0 || number != other || truncated != truncated_as_well;
}

/* What functions are called, from the outermost one on, and how much room each takes. */
typedef struct {
    uint8_t kinds[DEEPEST], rooms[DEEPEST], depth;
} way;

static void go(const way *to, int at);

__attribute__((noinline)) static void fixed(const way *to, int at)
{
    volatile char local[48];
    local[0] = 1;
    go(to, at);
    local[1] = local[0];
}

__attribute__((noinline)) static void other_fixed(const way *to, int at)
{
    volatile char local[32];
    local[0] = 2;
    go(to, at);
    local[1] = local[0];
}

__attribute__((noinline)) static void unknown(const way *to, int at)
{
    volatile char local[to->rooms[at - 1] * 16];
    local[0] = 3;
    go(to, at);
    local[1] = local[0];
}

__attribute__((noinline)) static void other_unknown(const way *to, int at)
{
    volatile char local[to->rooms[at - 1] * 16];
    local[0] = 4;
    go(to, at);
    local[1] = local[0];
}

__attribute__((noinline)) static void aligned(const way *to, int at)
{
    volatile char wide[64] __attribute__((aligned(64)));
    volatile char local[to->rooms[at - 1] * 16];
    wide[0] = local[0] = 5;
    go(to, at);
    local[1] = wide[0];
}

static const way *handled;
static int handled_at;

static void handle(int number)
{
    (void)number;
    go(handled, handled_at);
}

__attribute__((noinline)) static void signalled(const way *to, int at)
{
    handled = to;
    handled_at = at;
    raise(SIGUSR1);
}

__attribute__((noinline)) static void go(const way *to, int at)
{
    static void (*const functions[KINDS])(const way *, int) = {fixed,         other_fixed, unknown,
                                                               other_unknown, aligned,     signalled};
    if (at == to->depth)
        probe();
    else
        functions[to->kinds[at]](to, at + 1);
    __asm__ volatile("" ::: "memory"); /* the calls return here */
}

static way random_way(void)
{
    way made = {.depth = (uint8_t)(1 + rand() % DEEPEST)};
    for (int i = 0; i < made.depth; i++) {
        made.kinds[i] = (uint8_t)(rand() % 64 == 0 ? 5 : rand() % 16 == 0 ? 4 : rand() % 4);
        made.rooms[i] = (uint8_t)(1 + rand() % 4);
    }
    return made;
}

static int complain(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

/* Whether the way is known once it was gone three times, from the same place. */
static bool is_learned(const way *to)
{
    for (volatile int i = 0; i < 3; i++)
        go(to, 0);
    return !was_unwound;
}

static way random_plain_way(void)
{
    way made = {.depth = DEEPEST};
    for (int i = 0; i < DEEPEST; i++) {
        made.kinds[i] = (uint8_t)(rand() % PLAIN_KINDS);
        made.rooms[i] = (uint8_t)(1 + rand() % 4);
    }
    return made;
}

/* Whether a way that is known with a function is another stack with another function, and then known with both. */
static bool tells_functions_apart(const way *to)
{
    static const char one[] = "cuMemFree_v2", other[] = "cuCtxSynchronize";
    uint32_t numbers[2], keys_alike = 0;
    for (volatile int turn = 0; turn < 3; turn++)
        for (volatile int i = 0; i < 2; i++) {
            function = i == 0 ? one : other;
            go(to, 0);
            numbers[i] = found;
        }
    keys_alike = memcmp(ffm_stack_key(numbers[0]), ffm_stack_key(numbers[1]), FFM_KEY_BYTES) == 0;
    function = NULL;
    return numbers[0] != numbers[1] && !keys_alike && !was_unwound;
}

/* Whether, of many stacks that occur three times, the first are learned, and then one for so many that are not known.
 */
static bool learns_on(void)
{
    int captured = 0, learned = 0;
    known = (ffm_repeated_stacks){0};
    while (captured < 4 * FOR_EACH) {
        const way next = random_plain_way();
        for (volatile int i = 0; i < 3; i++) {
            go(&next, 0);
            captured += was_unwound;
        }
        learned += !was_unwound;
    }
    return learned >= AT_ONCE + 3 && learned <= AT_ONCE + 4;
}

int main(void)
{
    static way ways[WAYS];
    const way plain = {.kinds = {0, 2, 3, 1}, .rooms = {1, 2, 3, 1}, .depth = 4}, handler = {.kinds = {5}, .depth = 1};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    ffm_stacks_open();
    if (!is_learned(&plain))
        return complain("a stack that occurs again is unwound again");
    if (is_learned(&handler))
        return complain("a stack through the frame of a signal counts as known");
    if (!tells_functions_apart(&plain))
        return complain("a stack is the same for two functions, or not known for one of them");
    generation++;
    go(&plain, 0);
    if (!was_unwound)
        return complain("a stack is known though its addresses may have another meaning");
    if (!is_learned(&plain))
        return complain("a stack is not learned again");
    if (!learns_on())
        return complain("too many stacks are learned, or too few");
    for (int i = 0; i < WAYS; i++)
        ways[i] = random_way();
    uint64_t known_again = 0;
    for (int i = 0; i < TURNS; i++) {
        if (i % 1000 == 0) /* it learns few stacks more than at first */
            known = (ffm_repeated_stacks){0};
        const way *next = &ways[rand() % (i % 2 == 0 ? WAYS : 16)];
        function = &"ab"[rand() % 16 == 0];
        for (int again = rand() % 3; again >= 0; again--) {
            go(next, 0);
            known_again += !was_unwound;
        }
    }
    if (wrong != 0)
        return complain("another stack than by unwinding");
    return known_again < TURNS / 4 ? complain("hardly any stack is known") : 0;
}
