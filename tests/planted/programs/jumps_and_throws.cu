// The result is used behind a jump: an exception through frames, longjmp, siglongjmp out of a handler, another context
// on a stack in the heap.
// variants: thrown, jumped, from_handler, context, never
#include "planted.h"

#include <csetjmp>
#include <csignal>
#include <stdexcept>
#include <ucontext.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static long long found;
static jmp_buf place;
static sigjmp_buf signal_place;
static ucontext_t here, there;

static void look()
{
    found = sum(host, count);
}

struct Looks {
    ~Looks()
    {
        look();
    }
};

__attribute__((noinline)) static void deep(int levels)
{
    if (levels > 0) {
        volatile int kept = levels;
        deep(levels - 1);
        kept = kept + 1;
        return;
    }
    if (variant("jumped"))
        longjmp(place, 1);
    throw std::runtime_error("planted");
}

static void leave(int)
{
    siglongjmp(signal_place, 1);
}

static void in_context()
{
    look();
}

static void go()
{
    if (variant("thrown")) {
        try {
            Looks looks;
            deep(7);
        } catch (const std::exception &) {
        }
    } else if (variant("jumped")) {
        if (setjmp(place) == 0)
            deep(7);
        look();
    } else if (variant("from_handler")) {
        struct sigaction action = {};
        action.sa_handler = leave;
        sigaction(SIGUSR1, &action, nullptr);
        if (sigsetjmp(signal_place, 1) == 0)
            raise(SIGUSR1);
        look();
    } else if (variant("context")) {
        getcontext(&there);
        there.uc_stack.ss_size = 256 << 10;
        there.uc_stack.ss_sp = std::malloc(there.uc_stack.ss_size);
        there.uc_link = &here;
        makecontext(&there, in_context, 0);
        swapcontext(&here, &there);
    }
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: thrown, jumped, from_handler, context required, never unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    go();
    expect("sum", found, variant("never") ? 0 : 7 * count);
    settle();
}
