/* Memory of our own, from the system, since the program's allocator may be what calls us. */
#ifndef FFM_NEW_PAGES_H
#define FFM_NEW_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* `bytes` bytes of zeros. A page takes memory only once it is written. NULL if there is no room. */
static inline void *ffm_new_pages(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

#endif
