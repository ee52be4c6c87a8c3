/* What native code decides that a call has waited for, to be asked from Python: test_covers.py. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "waits.c"

void begin_program(void)
{
    events.unseen = false;
    memset(events.table, 0, sizeof events.table);
    memset(events.streams, 0, sizeof events.streams);
}

/* As the watch does after each call: whether it waited, and for what. */
bool after_call(const ffm_operation *operation, uint32_t thread_number, ffm_cover *cover)
{
    const ffm_function *function = &ffm_catalogue[operation->function];
    const ffm_thread thread = {.number = thread_number};
    ffm_waits_note(function, operation, &thread);
    return ffm_waited(function, operation, &thread, cover);
}

/* The stream of an operation, as covers name it. */
uint64_t stream_of(const ffm_operation *operation, uint32_t thread_number)
{
    const ffm_thread thread = {.number = thread_number};
    return ffm_stream_key(&ffm_catalogue[operation->function], operation, &thread);
}
