// A thread leaves a handler by a jump, and then uses results that it waits for.
// variants: jumped, plainly, context, thread, never
#include "planted.h"

#include <csetjmp>
#include <csignal>
#include <thread>
#include <ucontext.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *device, *host[2];
static sigjmp_buf place;
static jmp_buf plain_place;
static ucontext_t context_place;
static volatile int turns;

static void leave(int)
{
    if (variant("plainly"))
        longjmp(plain_place, 1);
    if (variant("context"))
        setcontext(&context_place);
    siglongjmp(place, 1);
}

static void jump()
{
    turns = 0;
    if (variant("plainly")) {
        if (setjmp(plain_place) == 0)
            raise(SIGUSR1);
    } else if (variant("context")) {
        getcontext(&context_place);
        if (turns++ == 0)
            raise(SIGUSR1);
    } else if (sigsetjmp(place, 1) == 0) {
        raise(SIGUSR1);
    }
}

static void use()
{
    jump();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host[0], device, bytes);
    // sync: jumped, plainly, context, thread required, never unnecessary or required (undecidable)
    WAIT(first, cudaStreamSynchronize(nullptr));
    long long found = variant("never") ? 7 * count : sum(host[0], count);
    expect("first", found, 7 * count);
    jump();
    fill(device, count, 8);
    DOWNLOAD_ASYNC(host[1], device, bytes);
    // sync: jumped, plainly, context, thread required, never unnecessary or required (undecidable)
    WAIT(second, cudaStreamSynchronize(nullptr));
    found = variant("never") ? 8 * count : sum(host[1], count);
    expect("second", found, 8 * count);
}

void program()
{
    struct sigaction action = {};
    action.sa_handler = leave;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &action, nullptr);
    device = device_integers(count);
    host[0] = pinned_integers(count);
    host[1] = pinned_integers(count);
    if (variant("thread"))
        std::thread(use).join();
    else
        use();
    settle();
}
