#include "thread_words.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "guarded.h"
#include "kernel.h"
#include "thread_memory.h"
#include "watched.h"

#ifndef PR_GET_TID_ADDRESS /* Linux 3.5 */
#define PR_GET_TID_ADDRESS 40
#endif

/* The page stays noted, because nothing shows when nobody waits for the word any more. It is noted for no real thread:
 * no thread pointer is odd. */
void ffm_thread_words_cleared(uint64_t word)
{
    enum { PAGE = 4096 };
    const uint64_t nobody = (word & ~(uint64_t)(PAGE - 1)) | 1;
    if (word == 0)
        return;
    ffm_thread_memory_note(nobody, word, word + sizeof(uint32_t));
    ffm_watch_spare(word, word + sizeof(uint32_t));
}

/* Kernels that cannot save processes (CONFIG_CHECKPOINT_RESTORE) do not say. The C library's word lies in its control
 * block, which is never protected. */
void ffm_thread_words_here(void)
{
    enum { CONTROL_BLOCK = 4096 };
    const uint64_t block = (uint64_t)__builtin_thread_pointer();
    uint64_t word = 0;
    if (ffm_kernel(SYS_prctl, PR_GET_TID_ADDRESS, (uint64_t)&word, 0, 0) == 0 && word - block >= CONTROL_BLOCK)
        ffm_thread_words_cleared(word);
}

/* The lowest bit of an entry of a robust list says that its mutex inherits priority. */
static uint64_t links_of(uint64_t entry)
{
    return entry & ~UINT64_C(1);
}

/* A robust mutex that a thread holds when it ends: the kernel marks it and wakes the next owner, who would sleep for
 * ever if the kernel could not write there. */
static void spare_robust(const struct robust_list_head *of, uint64_t entry)
{
    const uint64_t links = links_of(entry), word = links + (uint64_t)of->futex_offset;
    ffm_watch_spare(links, links + sizeof(struct robust_list));
    ffm_watch_spare(word, word + sizeof(uint32_t));
}

void ffm_thread_words_end(void)
{
    struct robust_list_head of;
    uint64_t head = 0, bytes = 0, entry;
    if (!ffm_watch_active() || ffm_kernel(SYS_get_robust_list, 0, (uint64_t)&head, (uint64_t)&bytes, 0) != 0 ||
        !ffm_guarded_read(&of, head, sizeof of))
        return;
    entry = (uint64_t)of.list.next;
    for (uint32_t i = 0; i < ROBUST_LIST_LIMIT && entry != head; i++) {
        spare_robust(&of, entry);
        if (!ffm_guarded_read(&entry, links_of(entry), sizeof entry))
            break;
    }
    if (of.list_op_pending != NULL)
        spare_robust(&of, (uint64_t)of.list_op_pending);
}
