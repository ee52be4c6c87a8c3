/* Copies of uploads that are kept on the device, found by their content.
 *
 * Only the library knows the addresses of the copies, so the program cannot write them. */
#ifndef FFM_REMEDY_CACHE_H
#define FFM_REMEDY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-128 of some bytes, and their number. */
typedef struct {
    uint64_t low, high;
    size_t bytes;
} ffm_content_key;

ffm_content_key ffm_content_of(const void *memory, size_t bytes);

/* Enqueue a copy of the content to the device address. False if no copy of it is held or the driver refuses. `at_once`:
 * only if the stream need not wait for another stream that is still filling the copy. */
bool ffm_cache_copy(const ffm_content_key *content, uint64_t to, uint64_t stream, bool at_once);

/* Keep the content that will be at a device address once the stream's work so far is done. `at_once`: only if there is
 * room, because freeing another copy would wait for the GPU. */
void ffm_cache_keep(const ffm_content_key *content, uint64_t from, uint64_t stream, bool at_once);

/* Device memory that the copies occupy. */
size_t ffm_cache_bytes(void);

/* Free all copies. Waits for the GPU. False if there were none. */
bool ffm_cache_give_back(void);

/* Forget all copies: they were destroyed with the context. */
void ffm_cache_forget(void);

#endif
