/* Lets other processes read and write watched memory.
 *
 * Preloaded if memory is watched by page. The kernel refuses process_vm_readv and process_vm_writev on pages that are
 * protected in the other process, as it does on pages that are not mapped. The other process's file of memory knows no
 * protection, so what was refused is tried there. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PATH = 32 };

typedef ssize_t (*transfer)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                            unsigned long);

static transfer next_of(const char *name)
{
    return (transfer)(uintptr_t)dlsym(RTLD_NEXT, name);
}

/* A place in a list of parts of memory. */
typedef struct {
    const struct iovec *parts;
    unsigned long left;
    size_t within; /* bytes of the first part that are passed */
} place;

/* Bytes to the end of the part, after moving to one that is not empty; 0 at the end of the list. */
static size_t ahead(place *at)
{
    while (at->left > 0 && at->within == at->parts->iov_len) {
        at->parts++;
        at->left--;
        at->within = 0;
    }
    return at->left == 0 ? 0 : at->parts->iov_len - at->within;
}

static ssize_t through_file(int file, place here, place there, bool writing)
{
    ssize_t done = 0;
    for (size_t mine, theirs; (mine = ahead(&here)) > 0 && (theirs = ahead(&there)) > 0;) {
        const size_t bytes = mine < theirs ? mine : theirs;
        char *local = (char *)here.parts->iov_base + here.within;
        const off_t remote = (off_t)((uintptr_t)there.parts->iov_base + there.within);
        const ssize_t moved = writing ? pwrite(file, local, bytes, remote) : pread(file, local, bytes, remote);
        if (moved <= 0)
            break;
        done += moved;
        here.within += (size_t)moved;
        there.within += (size_t)moved;
    }
    return done;
}

static size_t bytes_of(const struct iovec *parts, unsigned long count)
{
    size_t bytes = 0;
    for (unsigned long i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Whether the kernel can read a list of the calling process: if it cannot, it gives the same answer as for closed
 * pages. */
static bool can_read(const struct iovec *parts, unsigned long count)
{
    const transfer from_own = next_of("process_vm_readv");
    struct iovec copy;
    const struct iovec here = {&copy, sizeof copy};
    for (unsigned long i = 0; i < count; i++) {
        const struct iovec there = {(void *)(parts + i), sizeof copy};
        if (from_own(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof copy)
            return false;
    }
    return true;
}

/* All that was asked for, again; `before` is what the call answered. */
static ssize_t again(ssize_t before, pid_t process, place here, place there, bool writing)
{
    const int error = errno;
    char path[PATH];
    snprintf(path, sizeof path, "/proc/%d/mem", process);
    const int file = open(path, (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file >= 0) {
        const ssize_t done = through_file(file, here, there, writing);
        close(file);
        if (done > before && done > 0)
            return done;
    }
    errno = error;
    return before;
}

static ssize_t call(const char *name, pid_t process, place here, place there, unsigned long flags, bool writing)
{
    const ssize_t done = next_of(name)(process, here.parts, here.left, there.parts, there.left, flags);
    if (process == getpid() || (done < 0 && errno != EFAULT))
        return done;
    if (done < 0 && !(can_read(here.parts, here.left) && can_read(there.parts, there.left))) {
        errno = EFAULT;
        return done;
    }
    const size_t mine = bytes_of(here.parts, here.left), theirs = bytes_of(there.parts, there.left);
    if (done >= 0 && (size_t)done == (mine < theirs ? mine : theirs))
        return done;
    return again(done, process, here, there, writing);
}

EXPORT ssize_t process_vm_readv(pid_t process, const struct iovec *here, unsigned long parts_here,
                                const struct iovec *there, unsigned long parts_there, unsigned long flags)
{
    return call("process_vm_readv", process, (place){here, parts_here, 0}, (place){there, parts_there, 0}, flags,
                false);
}

EXPORT ssize_t process_vm_writev(pid_t process, const struct iovec *here, unsigned long parts_here,
                                 const struct iovec *there, unsigned long parts_there, unsigned long flags)
{
    return call("process_vm_writev", process, (place){here, parts_here, 0}, (place){there, parts_there, 0}, flags,
                true);
}
