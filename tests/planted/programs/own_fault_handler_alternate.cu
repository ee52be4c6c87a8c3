// A handler for SIGSEGV on an alternate stack, installed before the driver is loaded, as language runtimes do.
// variants: read, never
#include "planted.h"

#include <csignal>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

char *closed;
char stack[64 * 1024];
int faults_on_stack = 0;

void on_fault(int, siginfo_t *info, void *)
{
    char here;
    char *page = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(info->si_addr) / 4096 * 4096);
    if (page != closed)
        _exit(3);
    faults_on_stack += &here >= stack && &here < stack + sizeof stack;
    mprotect(closed, 4096, PROT_READ | PROT_WRITE);
}

void program()
{
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    closed = static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: read required, never required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    closed[10] = 1;
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
    expect("faults on the alternate stack", faults_on_stack, 1);
}
