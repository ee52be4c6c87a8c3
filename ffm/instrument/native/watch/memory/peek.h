/* Reading the program's memory that may be watched, without opening its pages to its other threads. */
#ifndef FFM_PEEK_H
#define FFM_PEEK_H

#include "boxes.h"

/* The same bytes in readable form: the box itself, or a copy of it. Call ffm_peek_over when done, on the same thread;
 * in between, no other memory may be read this way. */
ffm_box ffm_peek(const ffm_box *box);
void ffm_peek_over(void);

/* In a forked child, whose memory is different. */
void ffm_peek_after_fork(void);

#endif
