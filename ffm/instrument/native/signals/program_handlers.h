/* The program's own handlers of signals: whoever asks is told when they begin and end. They run on the stack that they
 * would have without ffm, also when they interrupt a system call that a handler of ours makes for the program. */
#ifndef FFM_PROGRAM_HANDLERS_H
#define FFM_PROGRAM_HANDLERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "kernel_action.h"

/* Whether the end of a handler will be told (ffm_signals_program_returns). IN_OURS: it has interrupted code whose
 * system calls are let through, such as a driver call. */
typedef enum { FFM_END_UNTOLD, FFM_END_TOLD, FFM_END_TOLD_IN_OURS } ffm_handler_end;

/* What is called before each handler of the program, on the thread that is interrupted. It may change where the
 * interrupted code goes on. */
typedef ffm_handler_end (*ffm_handler_listener)(ucontext_t *interrupted);

/* A handler of the program that has been entered. */
typedef struct {
    ucontext_t *frame; /* the kernel's */
    uint64_t program;  /* the stack pointer of the program's own code, which a handler of ours may have interrupted */
    bool asks;         /* for an alternate stack */
    bool told;         /* whether its end will be */
} ffm_signal_entry;

/* Moves the kernel's frame, and a handler goes on where this function has moved it; 0 leaves it where it is. If it is
 * moved, the kernel gets `rest` as the alternate stack. */
typedef uint64_t (*ffm_signals_mover)(const ffm_signal_entry *entry, stack_t *rest);

/* Where the last call is kept that is made on a stack, given by a pointer into it; NULL if that stack is not known. */
typedef struct ffm_signals_call ffm_signals_call;
typedef ffm_signals_call **(*ffm_signals_keeper)(uint64_t stack);

void ffm_signals_move_frames(ffm_signals_mover mover, ffm_signals_keeper keeper);

/* A system call of the program that a handler of ours makes. There, only the program's handlers interrupt it. They may
 * change the mask that they return to: it becomes the thread's when our handler returns. */
struct ffm_signals_call {
    ucontext_t *interrupted;
    uint64_t at_start;
    ffm_signals_call *before;
};

void ffm_signals_call_begins(ffm_signals_call *call, ucontext_t *interrupted);
void ffm_signals_call_over(const ffm_signals_call *call);

/* A handler of the program is about to return, to a mask that it may have changed: `frame` is its stack pointer. The
 * answer is what was said before the handler; UNTOLD of a frame that the program made itself. */
ffm_handler_end ffm_signals_program_returns(uint64_t frame);

/* From then on, `before` is called first in handlers that the program installs. */
void ffm_program_handlers_tell(ffm_handler_listener before);

/* Whether anybody is told of handlers. */
bool ffm_program_handlers_are_told(void);

/* Whether installing this makes a handler of the program begin with ours. */
bool ffm_program_handlers_precede(int number, const ffm_signal_action *wanted);

/* Install what the program asks for, preceded or not. The answer and the previous action are what the kernel would
 * return without ffm. */
int64_t ffm_program_handlers_install(int number, const ffm_signal_action *wanted, bool preceded,
                                     ffm_signal_action *before);

/* The program has handlers. They may interrupt ours only while those make system calls for the program. */
void ffm_program_handlers_interrupt(void);
bool ffm_program_handlers_may_interrupt(void);

/* Tell that a handler begins. Returns whether its end will be told. */
bool ffm_program_handlers_begin(ucontext_t *context);

/* Go on in the program's handler where it would run without us, unless it is to stay here. */
void ffm_program_handlers_continue(int number, uint64_t handler, const siginfo_t *info, ucontext_t *context, bool asks,
                                   bool told);

#endif
