/* Memory of our own, in zeroed pages: nothing here may call the program's allocator. */
#ifndef FFM_FRESH_PAGES_H
#define FFM_FRESH_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* NULL if memory is short. */
static inline void *ffm_fresh_pages(size_t bytes)
{
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

#endif
