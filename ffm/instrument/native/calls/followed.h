/* Functions of the C library, and of the kernel's code in the process, that are replaced before the program runs. */
#ifndef FFM_FOLLOWED_H
#define FFM_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of a table; the last one has no name. */
typedef struct {
    const char *name;
    void *wrapper;         /* its replacement */
    void *original;        /* runs the function without the replacement; NULL until it is replaced */
    bool (*wanted)(void);  /* whether to replace it at all; NULL means always */
    void (*bound)(void *); /* told of the original; may be NULL */
} ffm_followed;

#define FFM_FOLLOWED(function) .name = #function, .wrapper = (void *)(uintptr_t)wrap_##function

static inline uintptr_t ffm_followed_original(const ffm_followed *row)
{
    void *original;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while ((original = __atomic_load_n(&row->original, __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return (uintptr_t)original;
}

static inline void ffm_followed_bind(ffm_followed *row, void *original)
{
    __atomic_store_n(&row->original, original, __ATOMIC_RELEASE);
    if (row->bound != NULL)
        row->bound(original);
}

#endif
