/* Holds each process of the measured program at its start until the instruments are in place.
 *
 * Preloaded by the runner; the dynamic linker calls the constructor before any code of the program. The runner is the
 * other end of the socket named by FFM_GATE: it learns the process's number, attaches, and answers with one byte.
 * A process that cannot reach the runner goes on unmeasured. */
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gate_descriptors.h"
#include "gate_loading.h"
#include "gate_notice.h"
#include "gate_programs.h"
#include "gate_tracing.h"

/* The threads of the instruments begin while the process is held, and get the signal mask of the thread that is held.
 * They must not take signals in the program's place: a signal that all of its threads block, to wait for it, would end
 * the process. Faults of a thread itself cannot be put off, and the C library needs its own two. */
static void hold_signals_back(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static void wait_at_gate(uint32_t reason)
{
    const char *path = ffm_gate_programs_socket();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof address.sun_path)
        return;
    strcpy(address.sun_path, path);
    int error = errno;
    int gate = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (gate < 0)
        return;
    /* Yama lets only ancestors attach; the runner's helper is none. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const uint32_t hello[2] = {(uint32_t)getpid(), reason};
    ffm_gate_descriptors_before();
    sigset_t before;
    hold_signals_back(&before);
    if (connect(gate, (const struct sockaddr *)&address, sizeof address) == 0 &&
        send(gate, hello, sizeof hello, MSG_NOSIGNAL) == (ssize_t)sizeof hello) {
        char go;
        while (recv(gate, &go, 1, 0) < 0 && errno == EINTR)
            continue;
        ffm_gate_notice_hooked();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ffm_gate_descriptors_after();
    close(gate);
    errno = error;
}

/* The C library's own is code of the kernel's, which cannot be hooked; clock_gettime can. The kernel's allows NULL for
 * both, though the header does not. */
__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timeval *volatile given = now;
    if (given != NULL) {
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        *given = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    }
    return zone == NULL ? 0 : (int)syscall(SYS_gettimeofday, NULL, zone);
}

static bool sleeps(const char *thread)
{
    char path[64], status[512];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return true; /* it has ended */
    const size_t bytes = fread(status, 1, sizeof status - 1, file);
    fclose(file);
    status[bytes] = '\0';
    const char *name_end = strrchr(status, ')'); /* proc(5): the state comes behind the name */
    return name_end == NULL || name_end[1] == '\0' || strchr("SZX", name_end[2]) != NULL;
}

/* Whether only the calling thread runs or can run: then no other is within a function that is about to be patched. */
__attribute__((visibility("default"))) bool ffm_gate_others_sleep(void)
{
    char self[16];
    snprintf(self, sizeof self, "%d", (int)gettid());
    DIR *threads = opendir("/proc/self/task");
    bool all = true;
    for (struct dirent *thread; threads != NULL && all && (thread = readdir(threads)) != NULL;)
        all = thread->d_name[0] == '.' || strcmp(thread->d_name, self) == 0 || sleeps(thread->d_name);
    if (threads != NULL)
        closedir(threads);
    return all;
}

/* What brings a process to the gate; ffm/instrument/session/gate.py has the same numbers. */
enum { STARTED = 0, FORKED = 1, CUT_OFF = 2, NO_DRIVER = 3 };

static bool may_load; /* a driver; a child can what its parent can, until it executes another program */

/* For the agent, before it asks the runner something: whether it could not, because the program has closed its
 * descriptors. Then the runner is told here. */
__attribute__((visibility("default"))) bool ffm_gate_cut_off(void)
{
    if (!ffm_gate_descriptors_lost())
        return false;
    wait_at_gate(CUT_OFF);
    return true;
}

static const struct r_debug *loaded; /* the dynamic linker's list of modules, for debuggers */

/* Whether this process has forked, or was forked. */
__attribute__((visibility("default"))) bool ffm_gate_has_forked;

/* While another thread loads a module, the dynamic linker's list of them is between two states, and would stay so in a
 * child: nothing could be loaded there, the instruments least of all. So a fork waits until the list is whole, but not
 * for ever, because the thread that loads may itself wait for what the forking thread holds. A load that begins at the
 * moment of the fork itself is missed. */
static void before_fork(void)
{
    enum { PATIENCE = 5000 };                              /* turns */
    const struct timespec turn = {.tv_nsec = 1000 * 1000}; /* a millisecond */
    for (int i = 0; i < PATIENCE && loaded != NULL && *(volatile int *)&loaded->r_state != RT_CONSISTENT; i++)
        nanosleep(&turn, NULL);
    __atomic_store_n(&ffm_gate_has_forked, true, __ATOMIC_RELAXED); /* several threads may fork */
}

/* A program that looks at the list itself has a copy of `_r_debug`, which stays as it was at the start; the linker's
 * own is where the program's dynamic section says (DT_DEBUG). The linker's symbols are not found by its handle in every
 * version of the C library. */
static int find_list(struct dl_phdr_info *module, size_t bytes, void *opaque)
{
    const struct r_debug **list = opaque;
    (void)bytes;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(module->dlpi_addr + segment->p_vaddr);
             entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_DEBUG)
                *list = (const struct r_debug *)entry->d_un.d_ptr;
    }
    return 1; /* the first module is the program */
}

/* Set by the collector: what a forked child does before it comes to the gate. What is loaded into it there would find
 * locks that threads of its parent held. */
__attribute__((visibility("default"))) void (*ffm_gate_forked)(void);

static void after_fork(void)
{
    if (ffm_gate_forked != NULL)
        ffm_gate_forked();
    ffm_gate_notice_after_fork();
    ffm_gate_descriptors_after_fork();
    wait_at_gate(may_load ? FORKED : NO_DRIVER);
}

/* The program's first process is the runner's child. A runner that is killed can end nothing any more. */
static void end_with_runner(void)
{
    const char *runner = getenv("FFM_RUNNER");
    if (runner == NULL || atoi(runner) != (int)getppid())
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((int)getppid() != atoi(runner))
        raise(SIGKILL); /* it was killed before */
}

__attribute__((constructor)) static void at_start(void)
{
    end_with_runner();
    ffm_gate_programs_lead();
    ffm_gate_tracing_start();
    dl_iterate_phdr(find_list, &loaded);
    if (loaded != NULL)
        ffm_gate_notice_keep((void *)loaded->r_brk);
    may_load = ffm_gate_may_load();
    /* Before the collector's, which comes at the gate where the program is linked with the driver: a child runs these
     * handlers in the same order. */
    pthread_atfork(before_fork, NULL, after_fork);
    wait_at_gate(may_load ? STARTED : NO_DRIVER);
}
