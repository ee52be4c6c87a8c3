/* Reads memory of the program that may be watched, without opening its pages to the other threads. */
#ifndef FFM_PEEK_H
#define FFM_PEEK_H

#include "boxes.h"

/* The same bytes in readable form: the box itself, or a copy of it. Call ffm_peek_over when done, on the same thread;
 * in between, no other memory may be read this way. */
ffm_box ffm_peek(const ffm_box *box);
void ffm_peek_over(void);

/* The same piece by piece, for boxes that may be large: pieces that are open are read where they are, and the copies of
 * others stay in the cache. Each is readable until the next one, or until ffm_peek_over. */
void ffm_peek_begin(const ffm_box *box);
const void *ffm_peek_piece(uint64_t start, uint64_t bytes);

/* In the handler of a fault: if the calling thread reads there after ffm_peek_begin, and another thread has closed the
 * page meanwhile, open it again. Returns whether that was the case. */
bool ffm_peek_lift_again(uint64_t address);

/* In a forked child, whose memory is different. */
void ffm_peek_after_fork(void);

#endif
