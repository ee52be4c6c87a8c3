// Two threads whose alternate signal stacks have 8 KiB above a closed page. Handlers on them find their own addresses,
// raise other signals, make system calls, and are left by jumps: out of a stack overflow and out of a blocked read.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr int count = 2048, rounds = 10, reads = 250;
constexpr size_t page_bytes = 4096, stack_bytes = 8192, bytes = count * sizeof(int);

static thread_local char *lowest;
static thread_local int *host;
static thread_local sigjmp_buf place;
static thread_local volatile int handled, found;
static thread_local volatile bool leaves;
static std::atomic<int> elsewhere, seen_otherwise, changed;

static void look(const ucontext_t *context)
{
    char here;
    stack_t known = {}, another = {};
    elsewhere += &here < lowest || &here >= lowest + stack_bytes;
    seen_otherwise += context->uc_stack.ss_sp != lowest || context->uc_stack.ss_size != stack_bytes;
    sigaltstack(nullptr, &known);
    seen_otherwise += known.ss_sp != lowest || known.ss_flags != SS_ONSTACK;
    another.ss_sp = lowest;
    another.ss_size = stack_bytes;
    changed += sigaltstack(&another, nullptr) == 0;
    handled = handled + 1;
}

static void on_user(int number, siginfo_t *, void *context)
{
    look(static_cast<ucontext_t *>(context));
    found = host[5];
    if (number == SIGUSR1)
        raise(SIGUSR2);
    look(static_cast<ucontext_t *>(context));
}

static void on_fault(int, siginfo_t *, void *context)
{
    look(static_cast<ucontext_t *>(context));
    siglongjmp(place, 1);
}

static void on_timer(int, siginfo_t *, void *context)
{
    look(static_cast<ucontext_t *>(context));
    if (leaves) {
        leaves = false;
        siglongjmp(place, 1);
    }
}

static __attribute__((noinline)) int overflow(int depth)
{
    volatile char block[page_bytes];
    block[0] = static_cast<char>(depth);
    return overflow(depth + 1) + block[0];
}

static void download(int *device, int value)
{
    cudaMemset(device, value, bytes);
    cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost);
    cudaDeviceSynchronize();
}

static int expected(int value)
{
    return value * 0x01010101;
}

static timer_t timer_of_thread()
{
    timer_t timer;
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 1;
    event._sigev_un._tid = gettid();
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    return timer;
}

static void set(timer_t timer, long nanoseconds, bool again)
{
    const itimerspec when = {{0, again ? nanoseconds : 0}, {0, nanoseconds}};
    timer_settime(timer, 0, &when, nullptr);
}

static void run(int *wrong)
{
    char *block = static_cast<char *>(
        mmap(nullptr, page_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(block, page_bytes, PROT_NONE);
    lowest = block + page_bytes;
    stack_t given = {}, known = {};
    given.ss_sp = lowest;
    given.ss_size = stack_bytes;
    sigaltstack(&given, nullptr);
    int *device;
    cudaMalloc(reinterpret_cast<void **>(&device), bytes);
    cudaMallocHost(reinterpret_cast<void **>(&host), bytes);
    for (volatile int round = 0; round < rounds; round = round + 1) {
        download(device, round);
        raise(SIGUSR1);
        *wrong += found != expected(round);
        download(device, round + 1);
        if (!sigsetjmp(place, 1))
            overflow(0);
        *wrong += host[7] != expected(round + 1);
    }
    *wrong += handled != rounds * 5;
    const timer_t timer = timer_of_thread();
    int ends[2];
    char letter = 'a';
    *wrong += pipe(ends) != 0;
    for (volatile int round = 0; round < reads; round = round + 1) {
        leaves = true;
        if (!sigsetjmp(place, 1)) {
            set(timer, 200000, false);
            *wrong += read(ends[0], &letter, 1) >= 0;
        }
    }
    set(timer, 200000, true);
    for (int round = 0; round < rounds; ++round) {
        download(device, round);
        for (int turn = 0; turn < rounds; ++turn) {
            *wrong += write(ends[1], &letter, 1) != 1;
            while (read(ends[0], &letter, 1) != 1)
                ;
        }
        *wrong += host[9] != expected(round);
    }
    timer_delete(timer);
    sigaltstack(nullptr, &known);
    *wrong += known.ss_sp != lowest || known.ss_size != stack_bytes || known.ss_flags != 0;
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(number, &action, nullptr);
}

int main()
{
    handle(SIGUSR1, on_user);
    handle(SIGUSR2, on_user);
    handle(SIGSEGV, on_fault);
    handle(SIGRTMIN + 1, on_timer);
    int wrong = 0, wrong_in_thread = 0;
    run(&wrong);
    std::thread(run, &wrong_in_thread).join();
    std::printf("wrong %d and %d, elsewhere %d, seen otherwise %d, changed %d\n", wrong, wrong_in_thread,
                elsewhere.load(), seen_otherwise.load(), changed.load());
}
