/* Code in front of a system call, in which a jump can take the place of one instruction. */
#ifndef FFM_CALL_SITES_H
#define FFM_CALL_SITES_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

enum { FFM_CALL_BYTES = 2 }; /* of the instruction `syscall` */
enum { FFM_CALL_SITE_ROOM = 50 };

typedef struct {
    uint64_t start; /* of the instruction; a jump fits there (code_changes.h) */
    uint32_t bytes; /* of `code`, which does elsewhere what the code from there to the system call does */
    uint8_t code[FFM_CALL_SITE_ROOM];
} ffm_call_site;

/* In the handler of a system call, with its context: look for an instruction of five bytes or more that is followed
 * only by moves before the call. All of them must set general registers from constants, other registers, variables or
 * the stack, so that they can be executed again after any one of them, and all must have left in the registers what
 * they should. False if there is none. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
 * 2. */
bool ffm_call_site_find(const ucontext_t *context, ffm_call_site *site);

#endif
