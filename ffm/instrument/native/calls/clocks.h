/* Functions that read a clock, replaced so that each read is told of first. */
#ifndef FFM_CLOCKS_H
#define FFM_CLOCKS_H

#include "followed.h"
#include "registers.h"

extern ffm_followed ffm_clocks[];

/* The code at `caller` is about to read a clock, by calling one of these: `from` is NULL. */
typedef void ffm_clock_reader(const void *caller, const ffm_registers *from);

/* Whom to tell; until then, nobody is. */
void ffm_clocks_tell(ffm_clock_reader *reader);

/* Whether the function by which most clocks are read is replaced. */
bool ffm_clocks_are_followed(void);

#endif
