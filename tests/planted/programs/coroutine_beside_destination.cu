// A coroutine's stack lies between two downloads, and shares pages with them. It never calls the driver, and runs while
// they are watched.
// variants: read, never
#include "planted.h"

#include <cstring>
#include <ucontext.h>

constexpr int count = 1500, rounds = 3;
constexpr size_t room = 24000; // small enough for the heap, and no whole number of pages

static int arena[(2 * count * sizeof(int) + room) / sizeof(int)];
static ucontext_t outside, inside;
static int turns;

static int deeper(int depth)
{
    volatile char frame[600];
    std::memset((char *)frame, depth, sizeof frame);
    return depth == 0 ? frame[7] : deeper(depth - 1) + frame[3];
}

static void coroutine()
{
    for (;;) {
        turns += deeper(20) == 210;
        swapcontext(&inside, &outside);
    }
}

void program()
{
    int *device = device_integers(count), *other = device_integers(count);
    int *below = arena, *above = (int *)((char *)arena + count * sizeof(int) + room);
    getcontext(&inside);
    inside.uc_stack.ss_sp = below + count;
    inside.uc_stack.ss_size = room;
    makecontext(&inside, coroutine, 0);
    for (int i = 0; i < rounds; i++) {
        fill(device, count, 7 + i);
        fill(other, count, 70 + i);
        // sync: conditionally unnecessary (keep high) or unnecessary
        DOWNLOAD(low, below, device, count * sizeof(int));
        // sync: read required, never unnecessary or required (undecidable)
        DOWNLOAD(high, above, other, count * sizeof(int));
        swapcontext(&outside, &inside);
        if (variant("read"))
            expect("sum", sum(below, count) + sum(above, count), (77ll + 2 * i) * count);
    }
    expect("turns", turns, rounds);
    settle();
}
