/* Copies of uploads that are kept on the device, found by what they hold.
 *
 * Only the library knows where the copies lie, so that nothing of the program can write them. */
#ifndef FFM_REMEDY_CACHE_H
#define FFM_REMEDY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-128 of some bytes, and how many they are. */
typedef struct {
    uint64_t low, high;
    size_t bytes;
} ffm_content_key;

ffm_content_key ffm_content_of(const void *memory, size_t bytes);

/* Enqueue a copy of the content to the device address; false where no copy of it is held or the driver refuses.
 * `at_once`: only where the stream need not wait
 * for another one, which fills the copy. */
bool ffm_cache_copy(const ffm_content_key *content, uint64_t to, uint64_t stream, bool at_once);

/* Keep the content, which lies at a device address when the stream's work so far is done. `at_once`: only where there
 * is room, since the free of another copy would wait for the GPU. */
void ffm_cache_keep(const ffm_content_key *content, uint64_t from, uint64_t stream, bool at_once);

/* Device memory that the copies take. */
size_t ffm_cache_bytes(void);

/* Give all copies back to the driver. Waits for the GPU. False where there were none. */
bool ffm_cache_give_back(void);

/* Forget all copies: the context took them along. */
void ffm_cache_forget(void);

#endif
