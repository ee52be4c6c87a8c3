// A program asks for its alternate signal stack, gives one, and takes it away, in the first thread and in another.
// variants: read, never
#include "planted.h"

#include <csignal>
#include <thread>

constexpr int count = 2048;
static thread_local char alternate[64 << 10];
static thread_local volatile bool was_there;

static void on_signal(int)
{
    char here;
    was_there = &here >= alternate && &here < alternate + sizeof alternate;
}

static void asks(int *device, int *host)
{
    stack_t before = {}, given = {}, none = {}, after = {};
    sigaltstack(nullptr, &before);
    raise(SIGUSR1);
    expect("there without one", was_there, 0);
    given.ss_sp = alternate;
    given.ss_size = sizeof alternate;
    expect("given", sigaltstack(&given, &after), 0);
    expect("none before", (before.ss_flags & SS_DISABLE) && (after.ss_flags & SS_DISABLE), 1);
    raise(SIGUSR1);
    expect("there", was_there, 1);
    fill(device, count, 7);
    // sync: read required, never unnecessary or required (undecidable)
    DOWNLOAD(copy, host, device, count * sizeof(int));
    sigaltstack(nullptr, &before);
    expect("the same", before.ss_sp == alternate && before.ss_size == sizeof alternate && before.ss_flags == 0, 1);
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
    none.ss_flags = SS_DISABLE;
    expect("taken away", sigaltstack(&none, &after), 0);
    expect("what it was", after.ss_sp == alternate, 1);
    was_there = false;
    raise(SIGUSR1);
    expect("there no longer", was_there, 0);
    given.ss_size = 16;
    expect("too small", sigaltstack(&given, nullptr), -1);
    sigaltstack(nullptr, &after);
    expect("none", (after.ss_flags & SS_DISABLE) != 0, 1);
}

void program()
{
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    int *device = device_integers(count), *host = pinned_integers(count), *other = pinned_integers(count);
    asks(device, host);
    std::thread(asks, device, other).join();
    settle();
}
