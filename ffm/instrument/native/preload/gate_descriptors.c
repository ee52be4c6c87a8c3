#include "gate_descriptors.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors up to 1023 can be used with select. The agent takes about ten. */
enum { HIGHEST = 1024, ROOM = 64, LEAST_LIMIT = 4 * ROOM };

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    int number;
    dev_t device;
    ino_t file;
} descriptor;

static bool were_open[HIGHEST]; /* before the agent arrives */
static int taken[HIGHEST];      /* while it arrives */
static uint32_t taken_count;

/* The agent's, by number. A program that has closed them gets others while its threads run, and these may look at the
 * list. So a second list is filled then, which takes the first one's place. */
typedef struct {
    uint32_t count;
    descriptor descriptors[ROOM];
} list;
static list lists[2];
static list *kept = &lists[0];

static list *kept_now(void)
{
    return __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
}

/* Calls `each` for every open descriptor below HIGHEST except the one used for this. */
static void all_open(void (*each)(int number))
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        const int number = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && number != dirfd(folder) && number < HIGHEST)
            each(number);
    }
    if (folder != NULL)
        closedir(folder);
}

static void note_open(int number)
{
    were_open[number] = true;
}

static void close_now(int number)
{
    syscall(SYS_close, number);
}

/* Takes all numbers except the last ROOM. */
static void take_low_numbers(void)
{
    struct rlimit limit;
    const int some = open("/dev/null", O_RDONLY | O_CLOEXEC);
    taken_count = 0;
    if (some < 0)
        return;
    taken[taken_count++] = some;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < LEAST_LIMIT)
        return;
    const int end = (limit.rlim_cur < HIGHEST ? (int)limit.rlim_cur : HIGHEST) - ROOM;
    for (int number = some; number >= 0 && number < end;) {
        number = fcntl(some, F_DUPFD_CLOEXEC, number + 1);
        if (number >= end)
            close_now(number);
        else if (number >= 0)
            taken[taken_count++] = number;
    }
}

void ffm_gate_descriptors_before(void)
{
    memset(were_open, 0, sizeof were_open);
    all_open(note_open);
    take_low_numbers();
}

static list *fresh;

static void keep_new(int number)
{
    struct stat status;
    if (were_open[number] || fresh->count == ROOM || fstat(number, &status) != 0)
        return;
    descriptor *all = fresh->descriptors;
    uint32_t place = fresh->count++;
    for (; place > 0 && all[place - 1].number > number; place--)
        all[place] = all[place - 1];
    all[place] = (descriptor){number, status.st_dev, status.st_ino};
}

void ffm_gate_descriptors_after(void)
{
    while (taken_count > 0)
        close_now(taken[--taken_count]);
    fresh = kept_now() == &lists[0] ? &lists[1] : &lists[0];
    *fresh = *kept_now();
    all_open(keep_new);
    __atomic_store_n(&kept, fresh, __ATOMIC_RELEASE);
}

void ffm_gate_descriptors_after_fork(void)
{
    list *all = kept_now();
    while (all->count > 0)
        close_now(all->descriptors[--all->count].number);
}

/* ---- what the program closes ------------------------------------------------------------------------------------- */

/* Whether a number is the agent's. One that was closed without the C library may be the program's by now. */
static bool is_kept(const list *all, int number)
{
    struct stat status;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->descriptors[i].number == number)
            return fstat(number, &status) == 0 && status.st_dev == all->descriptors[i].device &&
                   status.st_ino == all->descriptors[i].file;
    return false;
}

bool ffm_gate_descriptors_lost(void)
{
    const list *all = kept_now();
    uint32_t left = 0;
    for (uint32_t i = 0; i < all->count; i++)
        left += is_kept(all, all->descriptors[i].number);
    return all->count > 0 && left == 0;
}

static bool is_agent(const void *caller)
{
    Dl_info module;
    return dladdr(caller, &module) != 0 && module.dli_fname != NULL && strstr(module.dli_fname, "frida-agent") != NULL;
}

static bool refuses(int number, const void *caller)
{
    const list *all = kept_now();
    if (__builtin_expect(all->count == 0 || number < all->descriptors[0].number, 1))
        return false;
    const int error = errno;
    const bool kept_from = is_kept(all, number) && !is_agent(caller);
    errno = error;
    return kept_from;
}

EXPORT int close(int number)
{
    if (refuses(number, __builtin_return_address(0))) {
        errno = EBADF;
        return -1;
    }
    static int (*found)(int);
    int (*next)(int) = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (__builtin_expect(next == NULL, 0)) { /* the gate is the first caller */
        next = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "close");
        __atomic_store_n(&found, next, __ATOMIC_RELAXED);
    }
    return next(number);
}

/* A number of the agent cannot be given to the program, because the agent cannot move. */
EXPORT int dup2(int from, int number)
{
    if (from != number && refuses(number, __builtin_return_address(0))) {
        errno = EBUSY;
        return -1;
    }
    return (int)syscall(SYS_dup2, from, number);
}

EXPORT int dup3(int from, int number, int flags)
{
    if (from != number && refuses(number, __builtin_return_address(0))) {
        errno = EBUSY;
        return -1;
    }
    return (int)syscall(SYS_dup3, from, number, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int status = 0;
    if (is_agent(__builtin_return_address(0)))
        return (int)syscall(SYS_close_range, first, last, flags);
    const list *all = kept_now();
    for (uint32_t i = 0; i < all->count && status == 0; i++) {
        const unsigned number = (unsigned)all->descriptors[i].number;
        if (number < first || number > last || !is_kept(all, all->descriptors[i].number))
            continue;
        if (number > first)
            status = (int)syscall(SYS_close_range, first, number - 1, flags);
        if (number == last)
            return status;
        first = number + 1;
    }
    return status == 0 ? (int)syscall(SYS_close_range, first, last, flags) : status;
}

/* A kernel may lack close_range (before Linux 5.9). */
EXPORT void closefrom(int first)
{
    const int error = errno;
    first = first < 0 ? 0 : first;
    if (close_range((unsigned)first, UINT_MAX, 0) != 0)
        for (int number = first, end = (int)sysconf(_SC_OPEN_MAX); number < end; number++)
            close(number);
    errno = error;
}
