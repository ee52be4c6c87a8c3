// Handlers run on an alternate stack of 8 KiB above a closed page, as runtimes of languages give it to their threads.
// They and the code around them use the results.
// variants: read, in_thread, never
#include "planted.h"

#include <csignal>
#include <thread>

constexpr int count = 2048;
constexpr size_t page_bytes = 4096, stack_bytes = 8192;

static int *host;
static thread_local char *lowest;
static volatile long long found;
static volatile int on_it;

static void look(int)
{
    char here;
    on_it = on_it + (&here >= lowest && &here < lowest + stack_bytes);
    if (!variant("never"))
        found = sum(host, count);
    std::fflush(stdout);
}

static void use(int *device)
{
    char *block = static_cast<char *>(
        mmap(nullptr, page_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(block, page_bytes, PROT_NONE);
    lowest = block + page_bytes;
    stack_t given = {}, none = {}, asked = {};
    given.ss_sp = lowest;
    given.ss_size = stack_bytes;
    expect("given", sigaltstack(&given, nullptr), 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    // sync: read, in_thread required, never unnecessary or required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    raise(SIGUSR1);
    expect("on the stack", on_it, 1);
    sigaltstack(nullptr, &asked);
    expect("the same", asked.ss_sp == lowest && asked.ss_size == stack_bytes && asked.ss_flags == 0, 1);
    none.ss_flags = SS_DISABLE;
    expect("taken away", sigaltstack(&none, nullptr), 0);
    expect("sum", found, variant("never") ? 0 : 7 * count);
}

void program()
{
    struct sigaction action = {};
    action.sa_handler = look;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    int *device = device_integers(count);
    host = pinned_integers(count);
    if (variant("in_thread"))
        std::thread(use, device).join();
    else
        use(device);
    settle();
}
