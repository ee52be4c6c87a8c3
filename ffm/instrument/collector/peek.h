/* Reading memory of the program that may be watched, without opening its pages to the program's other threads. */
#ifndef FFM_PEEK_H
#define FFM_PEEK_H

#include "boxes.h"

/* The same bytes where they can be read: the box itself, or a copy of it. ffm_peek_over when done, on the same thread;
 * between the two no other memory is read in this way. */
ffm_box ffm_peek(const ffm_box *box);
void ffm_peek_over(void);

/* In a forked child, whose memory is another. */
void ffm_peek_after_fork(void);

#endif
