/* Copies of uploads that are kept on the device. */
#ifndef FFM_REMEDY_CACHE_H
#define FFM_REMEDY_CACHE_H

#include <stddef.h>

/* Device memory that the copies take. */
size_t ffm_cache_bytes(void);

#endif
