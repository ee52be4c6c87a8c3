#include "peek.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aside.h"
#include "keys.h"
#include "new_pages.h"
#include "protection.h"
#include "questions.h"

/* Where keys close the pages, this thread is admitted to them. Elsewhere, the kernel reads pages through this file,
 * whatever their protection (proc_pid_mem(5)): several times as slow, and not some drivers' page-locked memory, which
 * is opened instead. */
static struct {
    pthread_mutex_t lock;
    char *copy;
    uint64_t bytes;
} peek = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread enum { DIRECT, COPIED, ADMITTED, OPENED } way __attribute__((tls_model("initial-exec")));

static bool room_for(uint64_t bytes)
{
    if (peek.bytes >= bytes)
        return true;
    if (peek.copy != NULL)
        munmap(peek.copy, peek.bytes);
    peek.copy = ffm_new_pages(bytes);
    peek.bytes = peek.copy == NULL ? 0 : bytes;
    return peek.copy != NULL;
}

static bool copy_all(uint64_t start, uint64_t bytes)
{
    int memory =
        open("/proc/self/mem",
             O_RDONLY | O_CLOEXEC); /* opened each time, because a program may close descriptors it does not know */
    if (memory < 0)
        return false;
    uint64_t done = 0;
    ssize_t some = room_for(bytes) ? 1 : 0;
    while (done < bytes && some > 0) {
        some = pread(memory, peek.copy + done, bytes - done, (off_t)(start + done));
        done += some > 0 ? (uint64_t)some : 0;
    }
    close(memory);
    return done == bytes;
}

ffm_box ffm_peek(const ffm_box *box)
{
    ffm_box readable = *box;
    uint64_t end = ffm_box_end(box);
    way = DIRECT;
    if (!ffm_ranges_hide(box->address, end))
        return readable;
    if (ffm_protection_is_by_keys()) {
        if (ffm_keys_admitted()) /* for a copy of the driver, which comes later */
            return readable;
        if (ffm_keys_admit()) {
            way = ADMITTED;
            return readable;
        }
    }
    pthread_mutex_lock(&peek.lock);
    if (copy_all(box->address, end - box->address)) {
        way = COPIED;
        readable.address = (uint64_t)peek.copy;
        return readable;
    }
    pthread_mutex_unlock(&peek.lock);
    way = ffm_keys_admit() ? ADMITTED : OPENED;
    ffm_aside(box->address, end);
    return readable;
}

void ffm_peek_over(void)
{
    if (way == COPIED)
        pthread_mutex_unlock(&peek.lock);
    else if (way == ADMITTED)
        ffm_keys_expel();
    else if (way == OPENED)
        ffm_aside_over();
    way = DIRECT;
}

void ffm_peek_after_fork(void)
{
    pthread_mutex_init(&peek.lock, NULL);
}
