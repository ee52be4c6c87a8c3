/* Preloaded: from the n-th time on that a process makes, names or fills a file below a folder, that fails.
 *
 * FAULT_FOLDER is the folder, FAULT_AT is n (from 1), FAULT_ERRNO the error's number. Each process counts on its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static atomic_long done;

static bool below(const char *path)
{
    const char *folder = getenv("FAULT_FOLDER");
    return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static bool named(int file)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return below(path);
}

/* Counts one operation; whether it is to fail. */
static bool fails(bool concerned)
{
    const char *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    if (!concerned || at == NULL || number == NULL || atomic_fetch_add(&done, 1) + 1 < atol(at))
        return false;
    errno = atoi(number);
    return true;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    return fails(named(file)) ? -1 : REAL(write)(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset)
{
    return fails(named(file)) ? -1 : REAL(pwrite64)(file, bytes, count, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    return fails(named(file)) ? -1 : REAL(writev)(file, parts, count);
}

int fsync(int file)
{
    return fails(named(file)) ? -1 : REAL(fsync)(file);
}

int posix_fallocate(int file, off_t offset, off_t length)
{
    return fails(named(file)) ? errno : REAL(posix_fallocate)(file, offset, length);
}

int posix_fallocate64(int file, off64_t offset, off64_t length)
{
    return fails(named(file)) ? errno : REAL(posix_fallocate64)(file, offset, length);
}

int ftruncate(int file, off_t length)
{
    return fails(named(file)) ? -1 : REAL(ftruncate)(file, length);
}

int ftruncate64(int file, off64_t length)
{
    return fails(named(file)) ? -1 : REAL(ftruncate64)(file, length);
}

int rename(const char *from, const char *to)
{
    return fails(below(to)) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(below(path)) ? -1 : REAL(mkdir)(path, mode);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return fails(flags & O_CREAT && below(path)) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return fails(flags & O_CREAT && below(path)) ? -1 : REAL(open64)(path, flags, mode);
}
