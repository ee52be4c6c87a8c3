// System calls that a program makes so often that the watch no longer intercepts each: they keep all registers, report
// addresses that nothing is at, are interrupted by signals, begin again or end with EINTR, are left by jumps and by the
// end of their thread, are made by several threads and by a child, and become signals where the program asks for that.
// Some take their number from another register, or from the caller, and are others from time to time.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include <cuda_runtime.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

constexpr int often = 1000, threads = 4;

static int nowhere;
static std::atomic<int> failed;
static volatile sig_atomic_t handled, leaves;
static volatile int written_by_handler;
static sigjmp_buf place;

static volatile int futex_operation = FUTEX_WAKE_PRIVATE;

/* A call as OpenMP's library makes it, whose number another register holds. Wakes nobody, or finds another value. */
__attribute__((noinline)) static long futex_by_register()
{
    static int word = 1;
    long answer;
    uint64_t last, kept[3];
    asm volatile("mov $202, %%r8d\n jmp 1f\n .p2align 4\n 1: mov %[operation], %%esi\n xor %%r10d, %%r10d\n"
                 "mov %%r8d, %%eax\n syscall\n mov %%r8, %[eighth]\n mov %%r10, %[tenth]\n mov %%rsi, %[second]\n"
                 : "=&a"(answer), [eighth] "=r"(kept[0]), [tenth] "=r"(kept[1]), [second] "=r"(kept[2]), "=d"(last)
                 : "D"(&word), "d"(2), [operation] "m"(futex_operation)
                 : "rsi", "rcx", "r8", "r10", "r11", "memory");
    failed += kept[0] != SYS_futex || kept[1] != 0 || kept[2] != static_cast<uint64_t>(futex_operation) || last != 2;
    return answer;
}

static void call_often()
{
    char byte = 'x';
    for (int number = 0; number < often; number++) {
        failed += write(nowhere, &byte, 1) != 1;
        failed += getppid() <= 0;
        failed += lseek(nowhere, 0, SEEK_CUR) != 0;
        failed += futex_by_register() != 0;
        failed += syscall(SYS_getppid) != getppid();
    }
}

/* The same code makes other calls. */
static void call_others()
{
    timespec now = {};
    futex_operation = FUTEX_WAIT_PRIVATE;
    std::printf("waits: %d\n", futex_by_register() == -EAGAIN);
    futex_operation = FUTEX_WAKE_PRIVATE;
    std::printf("time: %ld %d\n", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now), now.tv_sec > 0);
    std::printf("refused: %ld %d\n", syscall(SYS_write, nowhere, 8, 10), errno == EFAULT);
    const long child = syscall(SYS_fork);
    if (child == 0)
        _exit(5);
    int status = -1;
    waitpid(static_cast<pid_t>(child), &status, 0);
    std::printf("forked: %d\n", WEXITSTATUS(status));
}

/* Whether a call keeps what the kernel keeps, and what lies below the stack pointer. */
static bool keeps_registers()
{
    alignas(16) uint64_t before[32], after[32];
    uint64_t general[6] = {};
    for (int word = 0; word < 32; word++)
        before[word] = 0x0101010101010101u * static_cast<uint64_t>(word + 1);
    asm volatile(
        "movaps (%[before]), %%xmm0\n movaps 16(%[before]), %%xmm1\n movaps 112(%[before]), %%xmm7\n"
        "movaps 128(%[before]), %%xmm8\n movaps 240(%[before]), %%xmm15\n"
        "mov $11, %%edi\n mov $12, %%esi\n mov $13, %%edx\n mov $14, %%r8d\n mov $15, %%r9d\n mov $16, %%r10d\n"
        "sub $256, %%rsp\n call getppid@plt\n add $256, %%rsp\n"
        "mov %%rdi, (%[general])\n mov %%rsi, 8(%[general])\n mov %%rdx, 16(%[general])\n"
        "mov %%r8, 24(%[general])\n mov %%r9, 32(%[general])\n mov %%r10, 40(%[general])\n"
        "movaps %%xmm0, (%[after])\n movaps %%xmm1, 16(%[after])\n movaps %%xmm7, 112(%[after])\n"
        "movaps %%xmm8, 128(%[after])\n movaps %%xmm15, 240(%[after])\n"
        :
        : [before] "r"(before), [after] "r"(after), [general] "r"(general)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm7", "xmm8", "xmm15", "cc",
          "memory");
    bool kept = true;
    for (const int vector : {0, 1, 7, 8, 15})
        kept = kept && std::memcmp(before + 2 * vector, after + 2 * vector, 16) == 0;
    for (int number = 0; number < 6; number++)
        kept = kept && general[number] == static_cast<uint64_t>(11 + number);
    return kept;
}

/* The same of the upper halves of vector registers. */
__attribute__((target("avx"))) static bool keeps_upper_halves()
{
    if (!__builtin_cpu_supports("avx"))
        return true;
    const uint64_t before[4] = {1, 2, 3, 4};
    uint64_t after[4] = {};
    asm volatile("vmovdqu (%[before]), %%ymm9\n sub $256, %%rsp\n call getppid@plt\n add $256, %%rsp\n"
                 "vmovdqu %%ymm9, (%[after])\n vzeroupper\n"
                 :
                 : [before] "b"(before), [after] "r"(after)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm9", "cc", "memory");
    return std::memcmp(before, after, sizeof before) == 0;
}

static void handle(int)
{
    handled = handled + 1;
    char byte = 'y';
    written_by_handler = static_cast<int>(write(nowhere, &byte, 1));
    if (leaves)
        siglongjmp(place, 1);
}

static void install(int flags)
{
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, nullptr);
    handled = 0;
}

/* Again and again, since the first may come before the call that it is to interrupt. */
static void alarms(bool wanted)
{
    const itimerval times = {{0, wanted ? 10000 : 0}, {0, wanted ? 20000 : 0}};
    setitimer(ITIMER_REAL, &times, nullptr);
}

/* A pipe that takes nothing more, unless somebody reads. */
static void fill_pipe(int ends[2])
{
    static const char zeros[4096] = {};
    if (pipe(ends) != 0)
        return;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], zeros, sizeof zeros) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
}

static void interrupted()
{
    int ends[2];
    char byte = 'z';
    fill_pipe(ends);
    install(0);
    alarms(true);
    const long answer = write(ends[1], &byte, 1);
    const bool ended = errno == EINTR;
    alarms(false);
    std::printf("interrupted: %ld %d, handled %d, written %d\n", answer, ended, handled > 0, written_by_handler);
    install(SA_RESTART);
    std::thread reader([&] {
        char read_back[8192];
        while (!handled)
            usleep(1000);
        usleep(20000);
        failed += read(ends[0], read_back, sizeof read_back) <= 0;
    });
    alarms(true);
    const long begun_again = write(ends[1], &byte, 1);
    alarms(false);
    std::printf("begun again: %ld\n", begun_again);
    reader.join();
    fill_pipe(ends);
    leaves = 1;
    if (sigsetjmp(place, 1) == 0) {
        alarms(true);
        std::printf("not left: %ld\n", static_cast<long>(write(ends[1], &byte, 1)));
    }
    alarms(false);
    leaves = 0;
    std::printf("left\n");
}

struct tidy {
    ~tidy()
    {
        std::printf("tidied\n");
    }
};

static void *write_for_ever(void *ends)
{
    char byte = 'z';
    tidy at_end;
    for (;;)
        failed += write(static_cast<int *>(ends)[1], &byte, 1) != 1;
    return nullptr;
}

static void cancelled()
{
    int ends[2];
    pthread_t thread;
    void *result = nullptr;
    fill_pipe(ends);
    pthread_create(&thread, nullptr, write_for_ever, ends);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::printf("cancelled %d\n", result == PTHREAD_CANCELED);
}

/* While signals come at any moment. */
static void disturbed()
{
    install(SA_RESTART);
    const itimerval again = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &again, nullptr);
    for (int round = 0; round < 20; round++)
        call_often();
    setitimer(ITIMER_REAL, &never, nullptr);
}

static volatile char selector; /* of the program's own Syscall User Dispatch: 1 if its calls become signals */

static void answer(int, siginfo_t *info, void *context)
{
    selector = 0;
    static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_getppid ? 7 : 8;
}

static int answered_by_handler()
{
    struct sigaction action = {};
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
    if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector) != 0)
        return -1;
    selector = 1;
    const int answered = getppid();
    prctl(59, 0, 0, 0, 0);
    return answered;
}

static int status_of_child()
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        call_often();
        _exit(keeps_registers() ? 3 : 4);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main()
{
    int *host = nullptr, *device = nullptr;
    cudaMallocHost((void **)&host, 4096);
    cudaMalloc((void **)&device, 4096);
    cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost);
    cudaDeviceSynchronize();
    nowhere = open("/dev/null", O_WRONLY);
    call_often();
    std::thread others[threads];
    for (auto &other : others)
        other = std::thread(call_often);
    for (auto &other : others)
        other.join();
    call_often();
    call_others();
    std::printf("kept %d %d\n", keeps_registers(), keeps_upper_halves());
    int ends[2];
    failed += pipe(ends) != 0;
    const long refused = write(ends[1], reinterpret_cast<void *>(8), 10);
    std::printf("refused: %ld %d\n", refused, errno == EFAULT);
    interrupted();
    cancelled();
    disturbed();
    std::printf("answered %d\n", answered_by_handler());
    std::printf("child %d, failed %d\n", status_of_child(), failed.load());
    return host[0];
}
