/* The recording file, which grows in chunks that are mapped while they are written.
 *
 * Disk space is reserved before a chunk is mapped, so that a full disk is an error here and not a SIGBUS in the
 * program. What was written stays in the page cache when the process dies. */
#ifndef FFM_SINK_H
#define FFM_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "records.h"

/* A place to append records of one kind. Zero-initialized means no chunk yet. */
typedef struct {
    ffm_chunk *chunk;
    uint64_t written; /* records in this and all earlier chunks */
    uint64_t offset;  /* of the chunk, in the recording with that number: a forked child has another one */
    uint32_t recording;
} ffm_stream;

/* Create the recording `folder`/recording-PID[.N].ffm. Returns false if the file cannot be created. */
bool ffm_sink_open(const char *folder, uint32_t mode);

/* Of operations and samples, keep those of the last nanoseconds, and let later ones take the place of what is older.
 * Call this before the recording is opened. */
void ffm_sink_keep(uint64_t nanoseconds);

/* In a forked child: forget the parent's file and create a separate one; if that fails, nothing is recorded. False if
 * the parent recorded nothing. */
bool ffm_sink_reopen(void);

/* Whether the recording, if there is one, is this process's own. It is not in a child that was started without the C
 * library (directly by clone(2)), of which nothing is recorded. */
bool ffm_sink_is_own(void);

/* Whether records are taken: the recording is this process's own, and is not finished. */
bool ffm_sink_takes(void);

/* Give the stream a chunk with room for a record of so many bytes, or for several small ones. False if the disk is full
 * (counted in the header). */
bool ffm_sink_next_chunk(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes);

/* Count a record that is lost for another reason. */
void ffm_sink_lost(void);

/* Reserve `bytes` more at the end of the stream. NULL if the disk is full (counted in the header), if the recording is
 * another process's, or if it is finished. */
void *ffm_sink_reserve(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes);

/* Nothing could be reserved for a call that began at `start`: count it if the recording was finished meanwhile. */
void ffm_sink_left_out(uint64_t start);

/* Make the last reserved `bytes` part of the recording. */
void ffm_sink_commit(ffm_stream *stream, size_t bytes);

/* Unmap the stream's chunk; its content stays recorded. */
void ffm_sink_release(ffm_stream *stream);

/* Note in the header, now or once there is one, which Python is in the process and whether its frames can be read. */
void ffm_sink_note_python(uint32_t version, bool readable);

/* A number for a new thread of this recording. */
uint32_t ffm_sink_new_thread(void);

/* The process's rank under an MPI launcher, from its environment; otherwise -1. */
int32_t ffm_sink_rank(void);

/* Note that a kernel received what may be the address of ordinary memory, as the header says it; the first time counts.
 * The kernel is NULL if its name is not known. */
void ffm_sink_note_ordinary_memory(uint64_t now, const char *kernel, uint32_t offset, uint32_t cause);

/* Note the cost of a fault of the watch. */
void ffm_sink_set_fault_cost(uint64_t nanoseconds);

#endif
