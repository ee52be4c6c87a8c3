/* What transfers carry: hashes of the bytes, for telling repeated transfers (dissertation 4.3.2; design, section 6). */
#ifndef FFM_CONTENTS_H
#define FFM_CONTENTS_H

#include "catalogue.h"
#include "thread.h"

void ffm_contents_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread);
void ffm_contents_after(const ffm_function *function, const ffm_operation *operation, uint64_t number,
                        ffm_thread *thread);

#endif
