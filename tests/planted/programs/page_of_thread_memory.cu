// On the page on which a download begins lies memory that a thread needs at any moment: its control block, where the
// program gave the thread its stack, or the end of the stack on which handlers run. It gets it when the download is in
// flight, or after the wait.
// variants: thread, thread_after, thread_unread, handler, handler_unread
#include "planted.h"

#include <chrono>
#include <csignal>
#include <pthread.h>
#include <thread>

constexpr int count = 64;
constexpr size_t stack_bytes = 256 << 10, page_bytes = 4096;

static bool asked(const char *what)
{
    return std::strncmp(planted::variant(), what, std::strlen(what)) == 0;
}

/* Sleeps now and then, so that the kernel writes to the thread's memory when it continues. */
static void *work(void *)
{
    for (int turn = 0; turn < 20; turn++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return nullptr;
}

static pthread_t started(char *block)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    expect("stack", pthread_attr_setstack(&attributes, block, stack_bytes + page_bytes / 4), 0);
    expect("started", pthread_create(&thread, &attributes, work, nullptr), 0);
    return thread;
}

static void handle(int) {}

static void handle_on(char *block)
{
    stack_t given = {}, none = {};
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    given.ss_sp = block;
    given.ss_size = stack_bytes + page_bytes / 4;
    none.ss_flags = SS_DISABLE;
    expect("given", sigaltstack(&given, nullptr), 0);
    raise(SIGUSR1);
    expect("taken away", sigaltstack(&none, nullptr), 0);
}

void program()
{
    void *memory = mmap(nullptr, stack_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(cudaHostRegister(memory, stack_bytes + page_bytes, 0));
    char *block = static_cast<char *>(memory);
    int *host = reinterpret_cast<int *>(block + stack_bytes + page_bytes / 2), *device = device_integers(count);
    pthread_t thread = {};
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    if (variant("thread") || variant("thread_unread"))
        thread = started(block);
    // sync: thread, thread_after, handler required, thread_unread, handler_unread unnecessary or required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("thread_after"))
        thread = started(block);
    if (asked("thread"))
        expect("joined", pthread_join(thread, nullptr), 0);
    else
        handle_on(block);
    if (!variant("thread_unread") && !variant("handler_unread"))
        expect("sum", sum(host, count), 7 * count);
}
