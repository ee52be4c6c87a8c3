/* Folders, users, limits, the environment. */
#define _GNU_SOURCE
#include "bad.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* A new folder where temporary files are. */
static const char *own_folder(void)
{
    static char path[4096];
    const char *temporary = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bad-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(path) == NULL)
        _exit(95);
    return path;
}

THING(in_deleted_folder)
{
    const char *folder = own_folder();
    if (chdir(folder) != 0 || rmdir(folder) != 0)
        _exit(95);
}
THING(in_other_root)
{
    if (chroot(own_folder()) != 0 || chdir("/") != 0)
        _exit(95);
}
THING(in_other_root_forks)
{
    in_other_root();
    in_child(late_exit);
}
THING(masks_modes)
{
    umask(0777);
}
THING(nobody)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(94);
}
THING(nobody_forks)
{
    nobody();
    in_child(late_exit);
}
THING(becomes_root)
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
THING(few_files)
{
    limit(RLIMIT_NOFILE, 16);
}
THING(no_files)
{
    limit(RLIMIT_NOFILE, 3);
}
THING(small_files)
{
    limit(RLIMIT_FSIZE, 4096);
}
THING(empty_files)
{
    limit(RLIMIT_FSIZE, 0);
}
THING(hard_empty_files)
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
THING(little_memory)
{
    limit(RLIMIT_AS, used() + (64 << 20));
}
THING(no_more_memory)
{
    limit(RLIMIT_AS, used());
}
THING(small_stack)
{
    limit(RLIMIT_STACK, 64 << 10);
}
THING(no_stack_limit)
{
    limit(RLIMIT_STACK, RLIM_INFINITY);
}
THING(no_core)
{
    limit(RLIMIT_CORE, 0);
}
THING(small_data)
{
    limit(RLIMIT_DATA, 64 << 20);
}
THING(no_locking)
{
    hard_limit(RLIMIT_MEMLOCK, 0);
}
THING(no_signals)
{
    hard_limit(RLIMIT_SIGPENDING, 0);
}
THING(lowest_priority)
{
    setpriority(PRIO_PROCESS, 0, 19);
}
THING(one_processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
}
THING(clears_environment)
{
    clearenv();
}
THING(forgets_preloads)
{
    unsetenv("LD_PRELOAD");
    exec_self();
}
THING(overwrites_environment)
{
    for (char **each = environ; *each != NULL; each++)
        memset(*each, 'x', strlen(*each));
}
THING(overwrites_arguments)
{
    memset(arguments[0], 'y', strlen(arguments[0]));
}
