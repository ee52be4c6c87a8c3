/* Transfers at planned stacks. */
#ifndef FFM_REMEDY_TRANSFERS_H
#define FFM_REMEDY_TRANSFERS_H

#include "program_call.h"

/* cuMemcpyHtoD: bytes that the device already holds are copied there. Others go through pinned staging memory, so that
 * the program need not wait and may write the source at once. */
uint64_t ffm_upload(const ffm_program_call *call);

/* cuMemcpyHtoDAsync, and cuMemcpyAsync from the host: bytes that the device already holds are copied there, in the
 * call's own stream. */
uint64_t ffm_upload_asynchronous(const ffm_program_call *call);

/* Any copy or set that returns before it is done, unchanged. */
uint64_t ffm_enqueue(const ffm_program_call *call);

/* cuMemcpyDtoH: delivered when the program next waits or touches the destination (downloads.h). */
uint64_t ffm_download(const ffm_program_call *call);

#endif
