/* Uses the GPU, and does a bad thing before or between: `bad THING [before|between]`. */
#define _GNU_SOURCE
#include <cuda.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

enum { WORDS = 1024, TURNS = 5 };

static char **arguments;
static void *library;

/* ---- the GPU ----------------------------------------------------------------------------------------------------- */

#define DRIVER(each)                                                                                                   \
    each(cuInit) each(cuDevicePrimaryCtxRetain) each(cuDevicePrimaryCtxRelease_v2) each(cuCtxSetCurrent)               \
        each(cuCtxGetCurrent) each(cuMemAlloc_v2) each(cuMemFree_v2) each(cuMemcpyHtoD_v2) each(cuMemcpyDtoH_v2)       \
            each(cuMemcpyHtoDAsync_v2) each(cuCtxSynchronize) each(cuStreamCreate) each(cuStreamDestroy_v2)            \
                each(cuStreamSynchronize) each(cuMemHostAlloc) each(cuMemFreeHost) each(cuCtxDestroy_v2)

#define DECLARE(name) static typeof(name) *p_##name;
DRIVER(DECLARE)

static void check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        printf("%s: %d\n", call, (int)result);
        fflush(stdout);
        _exit(99);
    }
}

#define CHECK(name, ...) check(p_##name(__VA_ARGS__), #name)

static void load(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(98);
    }
#define FIND(name) p_##name = (typeof(p_##name))dlsym(library, #name);
    DRIVER(FIND)
}

static CUcontext context;

static void begin(void)
{
    if (library == NULL)
        load();
    CHECK(cuInit, 0);
    CHECK(cuDevicePrimaryCtxRetain, &context, 0);
    CHECK(cuCtxSetCurrent, context);
}

/* Makes TURNS waits of its own: their number is what a measurement must have seen. */
static void use_gpu(void)
{
    static __thread int host[WORDS];
    CUdeviceptr device;
    CUcontext current = NULL;
    if (p_cuInit == NULL || (p_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == NULL))
        begin();
    CHECK(cuMemAlloc_v2, &device, sizeof host);
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK(cuMemcpyHtoD_v2, device, host, sizeof host);
        CHECK(cuCtxSynchronize);
    }
    CHECK(cuMemcpyDtoH_v2, host, device, sizeof host);
    CHECK(cuMemFree_v2, device);
}

static void say(const char *word)
{
    if (write(1, word, strlen(word)) < 0)
        return;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static const char *option;

static void by_signal(void)
{
    signal(atoi(option), SIG_DFL);
    raise(atoi(option));
}

static void null(void)
{
    *(volatile int *)8 = 1;
}
static void illegal(void)
{
    __asm__ volatile("ud2");
}
static void breakpoint(void)
{
    __asm__ volatile("int3");
}
static void division(void)
{
    volatile int one = 1, zero = 0;
    one = one / zero;
}
static int deeper(volatile char *outer)
{
    volatile char room[4096];
    room[0] = *outer;
    return *outer == 1 ? 0 : deeper(room) + room[0];
}
static void overflow(void)
{
    volatile char first = 0;
    printf("%d\n", deeper(&first));
}
static void beyond_file(void)
{
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("empty", 0), 0);
    printf("%d\n", page[0]);
}
static void wild_jump(void)
{
    ((void (*)(void))(uintptr_t)0x1234)();
}
static void non_canonical(void)
{
    *(volatile int *)(uintptr_t)0x8000000000000000u = 1;
}
static void ends(void)
{
    exit(atoi(option));
}
static void ends_at_once(void)
{
    _exit(atoi(option));
}
static void ends_quickly(void)
{
    quick_exit(4);
}
static void ends_by_call(void)
{
    syscall(SYS_exit_group, 5);
}
static void aborts(void)
{
    abort();
}
static void late_use(void)
{
    use_gpu();
    say("late\n");
}
static void late_abort(void)
{
    abort();
}
static void late_exit(void)
{
    _exit(6);
}
static void at_exit_use(void)
{
    if (context == NULL)
        begin(); /* the driver's own functions of this kind come before those that were named earlier */
    atexit(late_use);
}
static void at_exit_abort(void)
{
    atexit(late_abort);
}
static void at_exit_exit(void)
{
    atexit(late_exit);
}
static void *endless(void *unused)
{
    for (;;)
        pause();
    return unused;
}
static void *busy(void *unused)
{
    for (volatile long turn = 0;; turn++)
        ;
    return unused;
}
static void *endless_use(void *unused)
{
    p_cuCtxSetCurrent(context);
    for (;;) {
        CUdeviceptr device;
        if (p_cuMemAlloc_v2(&device, 64) == CUDA_SUCCESS)
            p_cuMemFree_v2(device);
    }
    return unused;
}
static void *use(void *unused)
{
    if (p_cuInit != NULL)
        CHECK(cuCtxSetCurrent, context);
    use_gpu();
    return unused;
}
static void *exits(void *unused)
{
    exit(7);
    return unused;
}
static void start(void *(*what)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, what, NULL);
}
static void run_thread(void *(*what)(void *), const pthread_attr_t *how)
{
    pthread_t thread;
    if (pthread_create(&thread, how, what, NULL) == 0)
        pthread_join(thread, NULL);
    else
        say("no thread\n");
}
static void endless_threads(void)
{
    for (int i = 0; i < 8; i++)
        start(endless);
    start(busy);
}
static void endless_users(void)
{
    start(endless_use);
    start(endless_use);
    usleep(20000);
}
static void exit_in_thread(void)
{
    start(exits);
    pause();
}
static void *uses_and_exits(void *unused)
{
    use(unused);
    exit(0);
}
static void main_ends_first(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, uses_and_exits, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}
static void *cancelled(void *unused)
{
    CHECK(cuCtxSetCurrent, context);
    for (;;) {
        pthread_testcancel();
        usleep(100);
    }
    return unused;
}
static void cancels(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}
static pthread_key_t key;
static void use_at_thread_end(void *value)
{
    (void)value;
    use_gpu();
}
static void *has_destructor(void *unused)
{
    CHECK(cuCtxSetCurrent, context);
    pthread_setspecific(key, &key);
    return unused;
}
static void thread_destructor(void)
{
    if (context == NULL)
        begin();
    pthread_key_create(&key, use_at_thread_end);
    run_thread(has_destructor, NULL);
}
static void many_threads(void)
{
    enum { MANY = 64 };
    pthread_t threads[MANY];
    for (int i = 0; i < MANY; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

static void run_again(char *word)
{
    execv("/proc/self/exe", (char *[]){arguments[0], word, NULL});
}
static void exec_self(void)
{
    run_again("nothing");
}
static void exec_other(void)
{
    execl("/bin/echo", "echo", "other", (char *)NULL);
}
static void exec_nothing(void)
{
    execl("/nowhere/at/all", "nothing", (char *)NULL);
}
static void *exec_of_thread(void *unused)
{
    exec_self();
    return unused;
}
static void exec_in_thread(void)
{
    start(exec_of_thread);
    for (;;)
        pause();
}
static void exec_without_environment(void)
{
    execve("/bin/echo", (char *[]){"echo", "bare", NULL}, (char *[]){NULL});
}
static void exec_self_without_environment(void)
{
    execve("/proc/self/exe", (char *[]){arguments[0], "nothing", NULL}, (char *[]){NULL});
}
static void exec_memory(void)
{
    const int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
    static char bytes[1 << 16];
    for (ssize_t count; (count = read(from, bytes, sizeof bytes)) > 0;)
        if (write(to, bytes, (size_t)count) != count)
            _exit(97);
    fexecve(to, (char *[]){arguments[0], "nothing", NULL}, environ);
}
static void exec_unrandomized(void)
{
    if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
        return;
    personality(ADDR_NO_RANDOMIZE);
    run_again("nothing");
}
static void await_child(pid_t child)
{
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0);
    printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
}
static void in_child(void (*what)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        what();
        _exit(0);
    }
    await_child(child);
}
static void child(void)
{
    in_child(exec_self);
}
static void dying_child(void)
{
    in_child(null);
}
static void late_child(void)
{
    in_child(late_exit);
}
static void vforks(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        execv("/proc/self/exe", (char *[]){arguments[0], "nothing", NULL});
        _exit(1);
    }
    await_child(child);
}
static void spawns(void)
{
    pid_t child = 0;
    posix_spawn(&child, "/proc/self/exe", NULL, NULL, (char *[]){arguments[0], "nothing", NULL}, environ);
    await_child(child);
}
static void shell(void)
{
    printf("%d\n", system("exit 3"));
}
static void double_fork(void)
{
    int done[2];
    char byte;
    if (pipe(done) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            setsid();
            close(done[0]);
            usleep(50000);
            say("grandchild\n");
            _exit(0);
        }
        _exit(0);
    }
    close(done[1]);
    await_child(child);
    if (read(done[0], &byte, 1) < 0)
        return;
}
static void daemonizes(void)
{
    if (daemon(1, 1) != 0)
        _exit(96);
}
static void many_children(void)
{
    for (int i = 0; i < 20; i++)
        if (fork() == 0)
            _exit(0);
    while (wait(NULL) > 0)
        ;
}
static void raw_fork(void)
{
    const pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        _exit(0);
    await_child(child);
}
static void zombie(void)
{
    if (fork() == 0)
        _exit(0);
}
static void ignores_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    zombie();
}
static void new_group(void)
{
    setpgid(0, 0);
}
static void new_session(void)
{
    printf("%d\n", setsid() == (pid_t)-1);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static void close_each(void)
{
    for (int number = 3; number < 1100; number++)
        close(number);
}
static void close_each_raw(void)
{
    for (int number = 3; number < 1100; number++)
        syscall(SYS_close, number);
}
static void close_from(void)
{
    closefrom(3);
}
static void close_the_range(void)
{
    close_range(3, ~0u, 0);
}
static void close_range_raw(void)
{
    syscall(SYS_close_range, 3, ~0u, 0);
}
static void close_range_on_exec(void)
{
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    exec_self();
}
static void close_listed(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(folder))
            close(atoi(entry->d_name));
    closedir(folder);
}
static void close_standard(void)
{
    for (int number = 0; number < 3; number++)
        close(number);
}
static void onto_standard(void)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 0; number < 3; number++)
        dup2(file, number);
}
static void onto_each(void)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 3; number < 1100; number++)
        dup2(file, number);
}
static void onto_each_raw(void)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 3; number < 1100; number++)
        syscall(SYS_dup2, file, number);
}
static void use_up_descriptors(void)
{
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024});
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}
static void full_output(void)
{
    dup2(open("/dev/full", O_WRONLY), 1);
    puts("this is lost");
    fprintf(stderr, "flushed: %d\n", fflush(stdout));
    clearerr(stdout);
}
static void broken_output(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    close(ends[0]);
    dup2(ends[1], 1);
    say("nobody reads");
}
static void much_output(void)
{
    for (int i = 0; i < 100000; i++)
        printf("line %d of very many lines of output\n", i);
}
static void raw_output(void)
{
    for (int i = 0; i < 512; i++)
        putchar(i);
}

/* ---- folders, limits, environment -------------------------------------------------------------------------------- */

static void in_deleted_folder(void)
{
    char folder[] = "/tmp/ffm-bad-XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || rmdir(folder) != 0)
        _exit(95);
}
static void in_other_root(void)
{
    char folder[] = "/tmp/ffm-bad-XXXXXX";
    if (mkdtemp(folder) == NULL || chroot(folder) != 0 || chdir("/") != 0)
        _exit(95);
}
static void in_other_root_forks(void)
{
    in_other_root();
    in_child(late_exit);
}
static void masks_modes(void)
{
    umask(0777);
}
static void nobody(void)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(94);
}
static void nobody_forks(void)
{
    nobody();
    in_child(late_exit);
}
static void becomes_root(void)
{
    printf("%d\n", setuid(0) != 0 && errno == EPERM);
}

static void limit(int which, rlim_t value)
{
    struct rlimit old;
    getrlimit(which, &old);
    setrlimit(which, &(struct rlimit){value, old.rlim_max});
}
static void hard_limit(int which, rlim_t value)
{
    setrlimit(which, &(struct rlimit){value, value});
}
static void few_files(void)
{
    limit(RLIMIT_NOFILE, 16);
}
static void no_files(void)
{
    limit(RLIMIT_NOFILE, 3);
}
static void small_files(void)
{
    limit(RLIMIT_FSIZE, 4096);
}
static void empty_files(void)
{
    limit(RLIMIT_FSIZE, 0);
}
static void hard_empty_files(void)
{
    hard_limit(RLIMIT_FSIZE, 0);
}
static rlim_t used(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld", &pages) != 1)
        _exit(93);
    fclose(file);
    return (rlim_t)pages * 4096;
}
static void little_memory(void)
{
    limit(RLIMIT_AS, used() + (64 << 20));
}
static void no_more_memory(void)
{
    limit(RLIMIT_AS, used());
}
static void small_stack(void)
{
    limit(RLIMIT_STACK, 64 << 10);
}
static void no_stack_limit(void)
{
    limit(RLIMIT_STACK, RLIM_INFINITY);
}
static void no_core(void)
{
    limit(RLIMIT_CORE, 0);
}
static void small_data(void)
{
    limit(RLIMIT_DATA, 64 << 20);
}
static void no_locking(void)
{
    hard_limit(RLIMIT_MEMLOCK, 0);
}
static void no_signals(void)
{
    hard_limit(RLIMIT_SIGPENDING, 0);
}
static void lowest_priority(void)
{
    setpriority(PRIO_PROCESS, 0, 19);
}
static void one_processor(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static void clears_environment(void)
{
    clearenv();
}
static void forgets_preloads(void)
{
    unsetenv("LD_PRELOAD");
    exec_self();
}
static void overwrites_environment(void)
{
    for (char **each = environ; *each != NULL; each++)
        memset(*each, 'x', strlen(*each));
}
static void overwrites_arguments(void)
{
    memset(arguments[0], 'y', strlen(arguments[0]));
}
/* ---- stacks and signals ------------------------------------------------------------------------------------------ */

static void small_thread_stack(void)
{
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 64 << 10);
    run_thread(use, &how);
}
static void tiny_thread_stack(void)
{
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN);
    run_thread(use, &how);
}
static ucontext_t here, there;
static void coroutine(void)
{
    static char stack[128 << 10];
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, use_gpu, 0);
    swapcontext(&here, &there);
}
static void handler_says(int number)
{
    (void)number;
    say("handled\n");
}
static void handler_uses(int number)
{
    (void)number;
    use_gpu();
}
static volatile int counted;
static void handler_counts(int number)
{
    (void)number;
    counted++;
}
static void handle(int number, void (*how)(int), int flags)
{
    struct sigaction action = {.sa_handler = how, .sa_flags = flags};
    sigaction(number, &action, NULL);
}
static void other_stack(void)
{
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    handle(SIGUSR1, handler_uses, SA_ONSTACK);
    raise(SIGUSR1);
}
static void driver_in_handler(void)
{
    handle(SIGUSR1, handler_uses, 0);
    raise(SIGUSR1);
}
static void blocks_all(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}
static void blocks_all_raw(void)
{
    unsigned long all = ~0ul;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
}
static void ignores_all(void)
{
    for (int number = 1; number < 32; number++)
        signal(number, SIG_IGN);
}
static void defaults_all(void)
{
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
}
static void handles_all(void)
{
    for (int number = 1; number < 65; number++)
        handle(number, handler_says, 0);
    raise(SIGTERM);
}
static sigjmp_buf back;
static void jumps_back(int number)
{
    (void)number;
    siglongjmp(back, 1);
}
static void recovers_from(int number, void (*what)(void))
{
    handle(number, jumps_back, 0);
    if (sigsetjmp(back, 1) == 0)
        what();
    say("recovered\n");
    signal(number, SIG_DFL);
}
static void recovers_segv(void)
{
    recovers_from(SIGSEGV, null);
}
static void recovers_bus(void)
{
    recovers_from(SIGBUS, beyond_file);
}
static void recovers_fpe(void)
{
    recovers_from(SIGFPE, division);
}
static void recovers_ill(void)
{
    recovers_from(SIGILL, illegal);
}
static void recovers_abort(void)
{
    recovers_from(SIGABRT, late_abort);
}
static void own_trap(void)
{
    handle(SIGTRAP, handler_says, 0);
    breakpoint();
}
static void own_sys(void)
{
    handle(SIGSYS, handler_says, 0);
    raise(SIGSYS);
}
static void keeps_own_segv(void)
{
    handle(SIGSEGV, jumps_back, SA_NODEFER);
}
static void own_segv_once(void)
{
    handle(SIGSEGV, handler_says, SA_RESETHAND);
    null();
}
static void own_segv_raw(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } action = {(void (*)(int))1 /* SIG_IGN */, 0, NULL, 0};
    syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, 8);
}
static void timer(int which, int number, int microseconds)
{
    handle(number, handler_counts, SA_RESTART);
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(which, &every, NULL);
}
static void real_timer(void)
{
    timer(ITIMER_REAL, SIGALRM, 500);
}
static void profiling_timer(void)
{
    timer(ITIMER_PROF, SIGPROF, 1000);
}
static void interrupting_timer(void)
{
    real_timer();
    handle(SIGALRM, handler_counts, 0);
}
static void alarm_later(void)
{
    alarm(1000);
}
static void reads_signals(void)
{
    sigset_t set;
    struct signalfd_siginfo told;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const int file = signalfd(-1, &set, 0);
    raise(SIGUSR1);
    if (read(file, &told, sizeof told) == sizeof told)
        printf("signal %u\n", told.ssi_signo);
}
static void stops(void)
{
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    await_child(child);
}

/* ---- prctl, ptrace, seccomp -------------------------------------------------------------------------------------- */

static void no_new_privileges(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
static void not_dumpable(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}
static void renamed(void)
{
    prctl(PR_SET_NAME, ") R 0 (", 0, 0, 0);
}
static void dies_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}
static void lives_without_parent(void)
{
    prctl(PR_SET_PDEATHSIG, 0);
}
static void subreaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    double_fork();
}
static void no_timestamps(void)
{
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
}
static void no_huge_pages(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}
static void strict(void)
{
    say("strict\n");
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 0);
}
static void answer_call(int number, unsigned answer)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
static void no_ptrace(void)
{
    answer_call(SYS_ptrace, SECCOMP_RET_ERRNO | EPERM);
}
static void no_opening(void)
{
    answer_call(SYS_openat, SECCOMP_RET_ERRNO | EPERM);
}
static void no_allocation(void)
{
    answer_call(SYS_fallocate, SECCOMP_RET_ERRNO | EPERM);
}
static void kills_allocation(void)
{
    answer_call(SYS_fallocate, SECCOMP_RET_KILL_PROCESS);
}
static void no_advice(void)
{
    answer_call(SYS_madvise, SECCOMP_RET_ERRNO | ENOSYS);
}
static void no_prctl(void)
{
    answer_call(SYS_prctl, SECCOMP_RET_ERRNO | EPERM);
}
static void traps_a_call(void)
{
    handle(SIGSYS, handler_says, 0);
    answer_call(SYS_getppid, SECCOMP_RET_TRAP);
    syscall(SYS_getppid);
}
static void traced_by_parent(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static void traces_child(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    await_child(child);
}
static void traced_by_child(void)
{
    const pid_t self = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_ATTACH, self, NULL, NULL) == 0) {
            waitpid(self, NULL, 0);
            ptrace(PTRACE_DETACH, self, NULL, NULL);
        }
        _exit(0);
    }
    await_child(child);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void locks_memory(void)
{
    mlockall(MCL_CURRENT | MCL_FUTURE);
}
static void unmaps_nothing(void)
{
    munmap(NULL, 0x10000);
    munmap((void *)0x100000000, 1ul << 32);
}
static void reserves_much(void)
{
    mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static void many_mappings(void)
{
    const size_t pages = 20000;
    char *start = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page += 2)
        mprotect(start + page * 4096, 4096, PROT_READ);
}
static void all_mappings(void)
{
    const size_t pages = 200000;
    char *start = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page += 2)
        if (mprotect(start + page * 4096, 4096, PROT_READ) != 0)
            break;
}
static void writable_code(void)
{
    mprotect((void *)((uintptr_t)&writable_code & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}
static void moves_break(void)
{
    if (sbrk(1 << 20) == (void *)-1)
        say("no memory\n");
}
static void huge_allocation(void)
{
    printf("%d\n", malloc((size_t)1 << 62) == NULL);
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static void driver_errors(void)
{
    CUdeviceptr device = 0;
    begin();
    printf("%d", (int)p_cuMemAlloc_v2(&device, (size_t)1 << 60));
    printf(" %d", (int)p_cuMemcpyHtoD_v2(0x1234, &device, 64));
    printf(" %d\n", (int)p_cuMemFree_v2(0x1234));
}
static void no_context(void)
{
    begin();
    CHECK(cuCtxSetCurrent, NULL);
    printf("%d\n", (int)p_cuCtxSynchronize());
    CHECK(cuCtxSetCurrent, context);
}
static void context_ends(void)
{
    CUdeviceptr device;
    CUstream stream;
    static char *pinned;
    begin();
    CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CHECK(cuMemAlloc_v2, &device, 1 << 20);
    CHECK(cuMemHostAlloc, (void **)&pinned, 1 << 20, 0);
    for (int turn = 0; turn < 8; turn++)
        CHECK(cuMemcpyHtoDAsync_v2, device, pinned, 1 << 20, stream);
    CHECK(cuDevicePrimaryCtxRelease_v2, 0);
}
static void after_context(void)
{
    begin();
    CHECK(cuDevicePrimaryCtxRelease_v2, 0);
    printf("%d\n", (int)p_cuCtxSynchronize() != 0);
}
static void context_again(void)
{
    context_ends();
    begin();
}
static void pending_at_end(void)
{
    static CUdeviceptr device;
    static char *pinned;
    begin();
    CHECK(cuMemAlloc_v2, &device, 1 << 20);
    CHECK(cuMemHostAlloc, (void **)&pinned, 1 << 20, 0);
    for (int turn = 0; turn < 8; turn++)
        CHECK(cuMemcpyHtoDAsync_v2, device, pinned, 1 << 20, 0);
    _exit(0);
}
static void closes_driver(void)
{
    if (library == NULL)
        load();
    dlclose(library);
    load();
}
static void initializes_often(void)
{
    if (library == NULL)
        load();
    for (int turn = 0; turn < 100; turn++)
        CHECK(cuInit, 0);
}
static void driver_in_child(void)
{
    begin();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr device;
        _exit((int)p_cuMemAlloc_v2(&device, 64) == CUDA_SUCCESS ? 0 : 1);
    }
    await_child(child);
}
static void child_before_driver(void)
{
    const pid_t child = fork();
    if (child == 0) {
        use_gpu();
        _exit(0);
    }
    await_child(child);
}
static void nothing(void) {}

__attribute__((constructor)) static void early(int count, char **given)
{
    if (count > 1 && strcmp(given[1], "constructor") == 0)
        use_gpu();
}

__attribute__((destructor)) static void late(void)
{
    if (arguments != NULL && strcmp(arguments[1], "destructor") == 0)
        late_use();
    if (arguments != NULL && strcmp(arguments[1], "destructor_abort") == 0)
        abort();
    if (arguments != NULL && strcmp(arguments[1], "destructor_fault") == 0)
        null();
}

#define THING(name) {#name, name}
static const struct {
    const char *name;
    void (*act)(void);
} things[] = {
    THING(by_signal),
    THING(null),
    THING(illegal),
    THING(breakpoint),
    THING(division),
    THING(overflow),
    THING(beyond_file),
    THING(wild_jump),
    THING(non_canonical),
    THING(ends),
    THING(ends_at_once),
    THING(ends_quickly),
    THING(ends_by_call),
    THING(aborts),
    THING(at_exit_use),
    THING(at_exit_abort),
    THING(at_exit_exit),
    THING(endless_threads),
    THING(endless_users),
    THING(exit_in_thread),
    THING(main_ends_first),
    THING(cancels),
    THING(thread_destructor),
    THING(many_threads),
    THING(exec_self),
    THING(exec_other),
    THING(exec_nothing),
    THING(exec_in_thread),
    THING(exec_without_environment),
    THING(exec_self_without_environment),
    THING(exec_memory),
    THING(exec_unrandomized),
    THING(child),
    THING(dying_child),
    THING(late_child),
    THING(vforks),
    THING(spawns),
    THING(shell),
    THING(double_fork),
    THING(daemonizes),
    THING(many_children),
    THING(raw_fork),
    THING(zombie),
    THING(ignores_children),
    THING(new_group),
    THING(new_session),
    THING(close_each),
    THING(close_each_raw),
    THING(close_from),
    THING(close_the_range),
    THING(close_range_raw),
    THING(close_range_on_exec),
    THING(close_listed),
    THING(close_standard),
    THING(onto_standard),
    THING(onto_each),
    THING(onto_each_raw),
    THING(use_up_descriptors),
    THING(full_output),
    THING(broken_output),
    THING(much_output),
    THING(raw_output),
    THING(in_deleted_folder),
    THING(in_other_root),
    THING(in_other_root_forks),
    THING(masks_modes),
    THING(nobody),
    THING(nobody_forks),
    THING(becomes_root),
    THING(few_files),
    THING(no_files),
    THING(small_files),
    THING(empty_files),
    THING(hard_empty_files),
    THING(little_memory),
    THING(no_more_memory),
    THING(small_stack),
    THING(no_stack_limit),
    THING(no_core),
    THING(small_data),
    THING(no_locking),
    THING(no_signals),
    THING(lowest_priority),
    THING(one_processor),
    THING(clears_environment),
    THING(forgets_preloads),
    THING(overwrites_environment),
    THING(overwrites_arguments),
    THING(small_thread_stack),
    THING(tiny_thread_stack),
    THING(coroutine),
    THING(other_stack),
    THING(driver_in_handler),
    THING(blocks_all),
    THING(blocks_all_raw),
    THING(ignores_all),
    THING(defaults_all),
    THING(handles_all),
    THING(recovers_segv),
    THING(recovers_bus),
    THING(recovers_fpe),
    THING(recovers_ill),
    THING(recovers_abort),
    THING(own_trap),
    THING(own_sys),
    THING(keeps_own_segv),
    THING(own_segv_once),
    THING(own_segv_raw),
    THING(real_timer),
    THING(profiling_timer),
    THING(interrupting_timer),
    THING(alarm_later),
    THING(reads_signals),
    THING(stops),
    THING(no_new_privileges),
    THING(not_dumpable),
    THING(renamed),
    THING(dies_with_parent),
    THING(lives_without_parent),
    THING(subreaper),
    THING(no_timestamps),
    THING(no_huge_pages),
    THING(strict),
    THING(no_ptrace),
    THING(no_opening),
    THING(no_allocation),
    THING(kills_allocation),
    THING(no_advice),
    THING(no_prctl),
    THING(traps_a_call),
    THING(traced_by_parent),
    THING(traces_child),
    THING(traced_by_child),
    THING(locks_memory),
    THING(unmaps_nothing),
    THING(reserves_much),
    THING(many_mappings),
    THING(all_mappings),
    THING(writable_code),
    THING(moves_break),
    THING(huge_allocation),
    THING(driver_errors),
    THING(no_context),
    THING(context_ends),
    THING(after_context),
    THING(context_again),
    THING(pending_at_end),
    THING(closes_driver),
    THING(initializes_often),
    THING(driver_in_child),
    THING(child_before_driver),
    THING(nothing),
};

int main(int count, char **given)
{
    void (*act)(void) = nothing;
    arguments = given;
    if (count < 2)
        return 91;
    option = count > 3 ? given[3] : "";
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (strcmp(things[i].name, given[1]) == 0)
            act = things[i].act;
    if (count > 2 && strcmp(given[2], "before") == 0)
        act();
    use_gpu();
    if (count > 2 && strcmp(given[2], "between") == 0) {
        act();
        use_gpu();
    }
    say("done\n");
    return 0;
}
