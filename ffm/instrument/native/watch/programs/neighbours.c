#include "neighbours.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accesses.h"
#include "clock.h"
#include "guarded.h"
#include "ranges.h"
#include "records.h"
#include "thread.h"

enum { LONGEST = 64 }; /* of the paths that matter: /proc/PID/task/ID/mem */

static void record(uint64_t process)
{
    const ffm_thread *thread = ffm_thread_self();
    if (thread == NULL)
        return;
    const ffm_range nothing = {.thread = thread->number};
    ffm_ranges_lock();
    ffm_access_record(&nothing, FFM_ACCESS_OTHER, 0, process, ffm_now(), 0);
    ffm_ranges_unlock();
}

/* The process whose memory the file at a path is; 0 if it is none. */
static uint64_t of_path(uint64_t path)
{
    static const char folder[] = "/proc/", file[] = "/mem";
    char text[LONGEST] = {0};
    const uint64_t bytes = ffm_guarded_text(path);
    if (bytes <= sizeof folder + sizeof file || bytes > sizeof text || !ffm_guarded_read(text, path, bytes) ||
        strncmp(text, folder, sizeof folder - 1) != 0 || strcmp(text + bytes - sizeof file, file) != 0)
        return 0;
    const char *name = text + sizeof folder - 1;
    if (strncmp(name, "self/", 5) == 0 || strncmp(name, "thread-self/", 12) == 0)
        return (uint64_t)getpid();
    return strtoul(name, NULL, 10);
}

static uint64_t process_of(uint64_t number, const uint64_t *a)
{
    switch (number) {
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
        return a[0] == (uint64_t)getpid() ? 0 : a[0]; /* its own, as any other system call */
    case SYS_ptrace:
        return a[1];
    case SYS_open:
        return of_path(a[0]);
    case SYS_openat:
    case SYS_openat2:
        return of_path(a[1]);
    default:
        return 0;
    }
}

bool ffm_neighbours_before(uint64_t number, const uint64_t *arguments)
{
    const uint64_t process = process_of(number, arguments);
    if (process != 0 && process != (uint64_t)getpid())
        record(process);
    return process != 0 && process == (uint64_t)getpid();
}
