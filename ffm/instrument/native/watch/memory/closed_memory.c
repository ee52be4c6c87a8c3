#include "closed_memory.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "new_pages.h"

enum { HIGH = 640 }; /* programs put files of their own in low places, and count on the lowest free one */

static struct {
    bool stopped;
    bool doubted; /* the file may not be ours any more */
    int file;     /* 0: not opened yet; no program has it there */
    int64_t process;
    struct stat identity;
} memory;

static void close_file(int64_t file)
{
    ffm_kernel(SYS_close, (uint64_t)file, 0, 0, 0);
}

/* Under the lock of the ranges, as all that follows. */
static bool open_file(int64_t process)
{
    const int64_t low = ffm_kernel(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
    const int64_t high = low < 0 ? low : ffm_kernel(SYS_fcntl, (uint64_t)low, F_DUPFD_CLOEXEC, HIGH, 0);
    if (low >= 0)
        close_file(low);
    if (high < 0 || ffm_kernel(SYS_fstat, (uint64_t)high, (uint64_t)&memory.identity, 0, 0) != 0) {
        memory.stopped = true;
        return false;
    }
    memory.file = (int)high;
    memory.process = process;
    return true;
}

/* A program may close what it does not know, and open a file of its own in that place. */
static bool is_ours(void)
{
    struct stat status;
    return ffm_kernel(SYS_fstat, (uint64_t)memory.file, (uint64_t)&status, 0, 0) == 0 &&
           status.st_dev == memory.identity.st_dev && status.st_ino == memory.identity.st_ino;
}

static bool is_open(void)
{
    if (memory.stopped)
        return false;
    const int64_t process = ffm_kernel(SYS_getpid, 0, 0, 0, 0);
    if (memory.file != 0 && memory.process != process) /* as in a child of vfork */
        return false;
    if (memory.file == 0 || __atomic_load_n(&memory.doubted, __ATOMIC_RELAXED)) {
        __atomic_store_n(&memory.doubted, false, __ATOMIC_RELAXED);
        return (memory.file != 0 && is_ours()) || open_file(process);
    }
    return true;
}

void ffm_closed_memory_doubt(void)
{
    __atomic_store_n(&memory.doubted, true, __ATOMIC_RELAXED);
}

bool ffm_closed_memory_read(uint64_t address, void *to, uint32_t bytes)
{
    return is_open() && ffm_kernel(SYS_pread64, (uint64_t)memory.file, (uint64_t)to, bytes, address) == bytes;
}

bool ffm_closed_memory_write(uint64_t address, const void *from, uint32_t bytes)
{
    return is_open() && ffm_kernel(SYS_pwrite64, (uint64_t)memory.file, (uint64_t)from, bytes, address) == bytes;
}

static bool can_write(void)
{
    enum { BYTES = 4096 };
    static const char written = 1;
    char *page = ffm_new_pages(BYTES);
    if (page == NULL)
        return false;
    const bool closed = ffm_kernel(SYS_mprotect, (uint64_t)page, BYTES, PROT_NONE, 0) == 0;
    const bool allowed = closed && ffm_closed_memory_write((uint64_t)page, &written, sizeof written);
    ffm_kernel(SYS_munmap, (uint64_t)page, BYTES, 0, 0);
    return allowed;
}

bool ffm_closed_memory_may_write(void)
{
    static enum { UNKNOWN, ALLOWED, FORBIDDEN } answer;
    if (!is_open())
        return false;
    if (answer == UNKNOWN)
        answer = can_write() ? ALLOWED : FORBIDDEN;
    return answer == ALLOWED;
}

void ffm_closed_memory_stop(void)
{
    memory.stopped = true;
}

void ffm_closed_memory_after_fork(void)
{
    if (memory.file != 0 && is_ours())
        close_file(memory.file);
    memory.file = 0;
}
