#include "gate_notice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "gate_jump.h"

enum { JUMP_CODE = 0xE9 };

static struct {
    uint8_t *start;
    uint8_t before[FFM_JUMP_BYTES];
    void (*hook)(void);
    pid_t process; /* the process that the hook belongs to */
} notice;

void ffm_gate_notice_keep(void *function)
{
    notice.start = function;
    memcpy(notice.before, notice.start, sizeof notice.before);
}

/* The dynamic linker's own function is empty. */
static void tell(void)
{
    if (getpid() == notice.process)
        notice.hook();
}

void ffm_gate_notice_hooked(void)
{
    int32_t distance;
    if (notice.start == NULL || notice.start[0] != JUMP_CODE ||
        !ffm_jump_reaches(notice.start, (const uint8_t *)(uintptr_t)tell) ||
        !ffm_gate_jump_writable(notice.start, true))
        return;
    memcpy(&distance, notice.start + 1, sizeof distance);
    notice.hook = (void (*)(void))(uintptr_t)(notice.start + FFM_JUMP_BYTES + distance);
    notice.process = getpid();
    ffm_gate_jump(notice.start, (const uint8_t *)(uintptr_t)tell);
    ffm_gate_jump_writable(notice.start, false);
}

void ffm_gate_notice_after_fork(void)
{
    if (notice.start == NULL || memcmp(notice.start, notice.before, sizeof notice.before) == 0 ||
        !ffm_gate_jump_writable(notice.start, true))
        return;
    memcpy(notice.start, notice.before, sizeof notice.before);
    ffm_gate_jump_writable(notice.start, false);
}
