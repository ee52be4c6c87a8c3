/* Executes repeated MOVS and STOS in place of the CPU, up to the end of a page, for an instruction that faulted beside
 * watched data. Otherwise each of its elements would fault there. Safe in signal handlers. */
#ifndef FFM_STRING_INSTRUCTIONS_H
#define FFM_STRING_INSTRUCTIONS_H

#include <stdbool.h>
#include <ucontext.h>

#include "ranges.h"

/* Executes elements that lie on `page`, which is open, touch nothing that is watched, and read or write no other page
 * with watched data. The context then points to the element behind them, or to the next instruction. Returns whether
 * there were any. Under the lock of the ranges. */
bool ffm_string_executed(const ffm_page *page, ucontext_t *context);

#endif
