// A child of vfork runs in the program's memory, while the thread that started it waits, until it executes another
// program: subprocess.run of Python, posix_spawn, system and popen start programs that way. The child touches the
// result itself, lets the kernel read it, or gives it to the other program; or it does what such children do, and
// nothing else.
// variants: reads, pipe, argument, resets, spawn_resets, shell, piped, busy, busy_reads, clone, crashes, later
#include "planted.h"

#include <atomic>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);
constexpr int letters = 0x61616161;

static int *host;
static int ends[2];

static void handle(int) {}

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

/* As the children of Python and of posix_spawn do, before they execute a program. */
static void prepare()
{
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigset_t none;
    for (int number = 1; number < NSIG; ++number)
        sigaction(number, &usual, nullptr);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
}

/* What the child does; `words` are those of the other program. */
static void in_child(char **words)
{
    if (variant("reads") || variant("busy_reads"))
        _exit(sum(host, count) == 1LL * letters * count ? 0 : 1);
    if (variant("pipe"))
        _exit(write(ends[1], host, bytes) == ssize_t(bytes) ? 0 : 1);
    prepare();
    if (variant("crashes"))
        *reinterpret_cast<volatile int *>(8) = 1;
    execv("/nowhere", words);
    execv(words[0], words);
    _exit(127);
}

static int expected_of_child()
{
    if (variant("crashes"))
        return SIGSEGV;
    return variant("reads") || variant("busy_reads") || variant("pipe") ? 0 : 5;
}

static int by_vfork(char **words)
{
    const pid_t child = vfork();
    if (child == 0)
        in_child(words);
    return status_of(child);
}

static int by_spawn(char **words)
{
    pid_t child = -1;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn(&child, words[0], nullptr, &attributes, words, environ);
    return status_of(child);
}

static int run_in_child(void *words)
{
    execv(static_cast<char **>(words)[0], static_cast<char **>(words));
    _exit(127);
}

static int by_clone(char **words)
{
    static char stack[1 << 16] __attribute__((aligned(64)));
    return status_of(clone(run_in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, words));
}

static int by_shell()
{
    FILE *shell = popen("exit 5", "r");
    return shell ? WEXITSTATUS(pclose(shell)) : -1;
}

static void start()
{
    char test[] = "test ${#1} -eq 4096 && exit 5", plain[] = "exit 5", path[] = "/bin/sh", option[] = "-c";
    char *given = variant("argument") ? reinterpret_cast<char *>(host) : option;
    char *words[] = {path, option, variant("argument") ? test : plain, option, given, nullptr};
    if (variant("shell"))
        expect("status", WEXITSTATUS(std::system("exit 5")), 5);
    else if (variant("piped"))
        expect("status", by_shell(), 5);
    else if (variant("spawn_resets"))
        expect("status", by_spawn(words), 5);
    else if (variant("clone"))
        expect("status", by_clone(words), 5);
    else
        expect("status", by_vfork(words), expected_of_child());
}

void program()
{
    std::atomic<bool> over{false};
    std::thread busy;
    if (variant("busy") || variant("busy_reads"))
        busy = std::thread([&over] {
            while (!over)
                continue;
        });
    int *device = device_integers(count + 1);
    host = pinned_integers(count + 1);
    check(cudaMemset(device, 0, bytes + sizeof(int)));
    expect("pipe", pipe(ends), 0);
    signal(SIGSEGV, handle);
    signal(SIGUSR1, handle);
    fill(device, count, letters);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: reads, pipe, argument, busy_reads, later required, resets, spawn_resets, shell, piped, busy, crashes unnecessary, clone required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    start();
    over = true;
    if (busy.joinable())
        busy.join();
    if (variant("pipe")) {
        std::vector<int> found(count);
        expect("read", read(ends[0], found.data(), bytes), bytes);
        expect("sum", sum(found.data(), count), 1LL * letters * count);
    }
    for (int number : {SIGUSR1, SIGSEGV}) {
        struct sigaction now = {};
        sigaction(number, nullptr, &now);
        expect("handler", now.sa_handler == handle, 1);
    }
    if (variant("later"))
        expect("sum", sum(host, count), 1LL * letters * count);
}
