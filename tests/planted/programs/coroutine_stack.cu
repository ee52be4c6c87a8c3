// A coroutine runs on a block of the heap. It downloads into a variable of its own, gives way to others, and reads the
// variable when it goes on; or it reads something else there.
// variants: read, beside
#include "planted.h"

#include <ucontext.h>

constexpr int count = 2048;

static ucontext_t outside, inside;
static int *device;

static void coroutine()
{
    int result[count] = {};
    long long own = 1;
    fill(device, count, 7);
    // sync: read required, beside required (undecidable)
    DOWNLOAD(copy, result, device, count * sizeof(int));
    swapcontext(&inside, &outside);
    if (variant("read"))
        expect("sum", sum(result, count), 7 * count);
    else
        expect("own", own, 1);
    settle(); // the variable is gone afterwards
    swapcontext(&inside, &outside);
}

void program()
{
    constexpr size_t room = 1 << 18;
    device = device_integers(count);
    getcontext(&inside);
    inside.uc_stack.ss_sp = std::malloc(room);
    inside.uc_stack.ss_size = room;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    swapcontext(&outside, &inside);
}
