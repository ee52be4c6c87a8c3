/* Threads with very small stacks.
 *
 * Frida's agent runs on the stack of each thread that ends. The smallest possible stack would overflow there, and
 * SIGSEGV end the program. So such threads get a larger one, unless the stack is the program's own memory. It takes
 * only address space: what no thread touches takes no memory. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROOM = 128 << 10 }; /* bytes */

typedef int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool too_small(const pthread_attr_t *how)
{
    void *start;
    size_t size;
    if (how == NULL || pthread_attr_getstack(how, &start, &size) != 0 || size == 0 || size >= ROOM)
        return false;
    return (uintptr_t)start + size == 0; /* glibc keeps the end of the program's own memory, or 0 */
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *how,
                                                          void *(*what)(void *), void *argument)
{
    const create next = (create)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    if (!too_small(how))
        return next(thread, how, what, argument);
    pthread_attr_t larger = *how; /* it shares what `how` points to, and must not be destroyed */
    pthread_attr_setstacksize(&larger, ROOM);
    return next(thread, &larger, what, argument);
}
