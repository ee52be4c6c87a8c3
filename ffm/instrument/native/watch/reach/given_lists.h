/* Lists of the allocations whose addresses are among the parameters of kernels. Equal lists are recorded once. */
#ifndef FFM_GIVEN_LISTS_H
#define FFM_GIVEN_LISTS_H

#include <stdint.h>

enum { FFM_MOST_GIVEN = 64 };

typedef struct {
    uint64_t offset, allocation;
} ffm_given_word;

typedef struct {
    uint32_t count; /* larger than FFM_MOST_GIVEN if not all are here */
    ffm_given_word words[FFM_MOST_GIVEN];
} ffm_given_words;

/* The number of a list; 0 if it is too long, or there are too many. */
uint64_t ffm_given_list(const ffm_given_words *list);

/* In a forked child, after its recording is open. */
void ffm_given_lists_after_fork(void);

#endif
