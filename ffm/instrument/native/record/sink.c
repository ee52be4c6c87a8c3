#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue.h"
#include "clock.h"
#include "kernel.h"
#include "new_pages.h"
#include "ring.h"
#include "signal_mask.h"

/* Programs with many threads make few calls in most of them, and each page of a new chunk costs a fault. Where many
 * calls are made, old chunks are used again only from a size on. */
enum { FIRST_CHUNK = 4 * 1024, WORTH_REUSING = 64 * 1024, LARGEST_CHUNK = 1024 * 1024 };

static struct {
    bool locked;
    int file;
    struct stat identity; /* of the file */
    uint32_t mode;
    ffm_header *header;
    uint32_t number; /* of the recording: how many recordings this process and its ancestors have begun */
    uint64_t kept;   /* nanoseconds; 0 for all */
    uint32_t python_version;
    bool python_readable;
    char folder[2048];
    char path[2200];
    bool limit_is_raised; /* on the size of files: a child that is forked meanwhile inherits that */
    struct rlimit raised_limit, program_limit;
} sink = {.file = -1};

/* Signal handlers come here as well. Waiting makes no call of the C library: the watch would look at it in a thread
 * that ends, and take a lock that others hold when they wait here. */
static uint64_t lock(void)
{
    const uint64_t before = ffm_signals_set_mask(~FFM_SIGNALS_OURS);
    while (__atomic_test_and_set(&sink.locked, __ATOMIC_ACQUIRE))
        ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
    return before;
}

static void unlock(uint64_t before)
{
    __atomic_clear(&sink.locked, __ATOMIC_RELEASE);
    ffm_signals_set_mask(before);
}

/* Set in a process with a recording. The kernel clears the page in every child with its own memory (madvise(2),
 * MADV_WIPEONFORK): so a child started without the C library learns that the recording is its parent's. */
static bool *own;

static void mark_own(void)
{
    enum { PAGE = 4096 };
    if (own == NULL) {
        void *page = ffm_new_pages(PAGE);
        if (page == NULL)
            return;
        madvise(page, PAGE, MADV_WIPEONFORK);
        own = page;
    }
    *own = true;
}

bool ffm_sink_is_own(void)
{
    return own == NULL || *own;
}

/* The number that the usual launchers give a process; -1 if there is none. */
int32_t ffm_sink_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return (int32_t)strtol(value, NULL, 10);
    }
    return -1;
}

static int create_file(void)
{
    /* A process that replaces itself by exec keeps its number, so the name may be taken. */
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(sink.path, sizeof sink.path, "%s/recording-%d-%d.ffm", sink.folder, (int)getpid(), attempt);
        int file = open(sink.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Programs put files of their own in low places, and count on the lowest free one. */
static int moved_up(int file)
{
    enum { HIGH = 896 };
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, HIGH);
    if (moved < 0)
        return file;
    close(file);
    return moved;
}

/* A program may close what it does not know, and open a file of its own in that place. */
static bool is_our_file(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && status.st_dev == sink.identity.st_dev && status.st_ino == sink.identity.st_ino;
}

static bool file_is_open(void)
{
    if (is_our_file(sink.file))
        return true;
    const int file = open(sink.path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    if (!is_our_file(file)) {
        close(file);
        return false;
    }
    sink.file = moved_up(file);
    return true;
}

/* The limit on the size of files is the program's, for its own files. If another of its threads sets one while ours is
 * in place, that is found when ours is taken back, and stays. */
static void set_limit_back(void)
{
    struct rlimit ours = sink.raised_limit, before = sink.program_limit, found;
    while (prlimit(0, RLIMIT_FSIZE, &before, &found) == 0 &&
           (found.rlim_cur != ours.rlim_cur || found.rlim_max != ours.rlim_max)) {
        ours = before;
        before = found;
    }
}

/* Reserves room on the disk. */
static bool reserve(off_t offset, size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || (rlim_t)offset + bytes <= limit.rlim_cur)
        return posix_fallocate(sink.file, offset, (off_t)bytes) == 0;
    sink.program_limit = limit;
    sink.raised_limit = (struct rlimit){limit.rlim_max, limit.rlim_max};
    sink.limit_is_raised = true;
    const bool changed = prlimit(0, RLIMIT_FSIZE, &sink.raised_limit, &sink.program_limit) == 0;
    const bool done = posix_fallocate(sink.file, offset, (off_t)bytes) == 0;
    if (changed)
        set_limit_back();
    sink.limit_is_raised = false;
    return done;
}

/* Asked at the gate: the program may later trap calls that it never makes itself. */
static pid_t parent_process;

__attribute__((constructor)) static void note_parent(void)
{
    parent_process = getppid();
}

static bool open_locked(void)
{
    sink.file = create_file();
    if (sink.file < 0)
        return false;
    sink.file = moved_up(sink.file);
    if (fstat(sink.file, &sink.identity) != 0)
        return false;
    if (!reserve(0, FFM_HEADER_BYTES))
        return false;
    void *page = mmap(NULL, FFM_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sink.file, 0);
    if (page == MAP_FAILED)
        return false;
    ffm_header *header = page;
    header->version = FFM_VERSION;
    header->process_id = (uint32_t)getpid();
    header->parent_id = (uint32_t)parent_process;
    header->rank = ffm_sink_rank();
    header->mode = sink.mode;
    header->opened = ffm_now();
    header->file_bytes = FFM_HEADER_BYTES;
    header->python_version = sink.python_version;
    header->python_readable = sink.python_readable;
    memcpy(header->catalogue_digest, FFM_CATALOGUE_DIGEST, sizeof header->catalogue_digest);
    if (readlink("/proc/self/exe", header->executable, sizeof header->executable - 1) < 0)
        header->executable[0] = '\0';
    memcpy(header->magic, "FFMTRACE", sizeof header->magic);
    header->kept = sink.kept;
    sink.header = header;
    sink.number++;
    ffm_ring_clear();
    mark_own();
    return true;
}

void ffm_sink_keep(uint64_t nanoseconds)
{
    sink.kept = nanoseconds;
}

bool ffm_sink_open(const char *folder, uint32_t mode)
{
    const uint64_t before = lock();
    bool done = sink.header != NULL;
    if (!done) {
        snprintf(sink.folder, sizeof sink.folder, "%s", folder);
        sink.mode = mode;
        done = open_locked();
    }
    unlock(before);
    return done;
}

bool ffm_sink_reopen(void)
{
    __atomic_clear(&sink.locked, __ATOMIC_RELEASE); /* another thread of the parent may have held it */
    if (sink.limit_is_raised)
        set_limit_back();
    sink.limit_is_raised = false;
    if (sink.header == NULL)
        return false;
    ffm_header *parent = sink.header;
    if (is_our_file(sink.file))
        close(sink.file);
    sink.header = NULL;
    parent_process = (pid_t)parent->process_id;
    if (!open_locked())
        __atomic_fetch_add(&parent->lost, 1, __ATOMIC_RELAXED); /* a run that lost something is refused */
    munmap(parent, FFM_HEADER_BYTES);
    return true;
}

/* Map a place of the file whose records are too old to be kept, if there is one; locked. */
static ffm_chunk *old_chunk(size_t least, uint64_t *offset, uint64_t *capacity)
{
    ffm_ring_place place;
    uint64_t now = ffm_now(); /* since the machine was started, which may be less than is kept */
    if (sink.kept == 0 || now < sink.kept || !ffm_ring_take(least, now - sink.kept, &place))
        return NULL;
    void *pages = mmap(NULL, place.capacity, PROT_READ | PROT_WRITE, MAP_SHARED, sink.file, (off_t)place.offset);
    if (pages == MAP_FAILED)
        return NULL;
    ffm_chunk *chunk = pages;
    if (chunk->kind == FFM_CHUNK_OPERATIONS)
        __atomic_fetch_add(&sink.header->dropped, chunk->used, __ATOMIC_RELAXED);
    __atomic_store_n(&chunk->used, 0, __ATOMIC_RELEASE); /* before anything else: the process may be killed */
    *offset = place.offset;
    *capacity = place.capacity;
    return chunk;
}

/* Map a new place at the end of the file; locked. */
static ffm_chunk *fresh_chunk(size_t capacity, uint64_t *offset)
{
    *offset = sink.header->file_bytes;
    if (!reserve((off_t)*offset, capacity))
        return NULL;
    void *pages = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, sink.file, (off_t)*offset);
    if (pages == MAP_FAILED)
        return NULL;
    /* Populating all pages at once costs half of a fault each. If the kernel does not know this advice (before Linux
     * 5.14), they fault one by one. */
    madvise(pages, capacity, MADV_POPULATE_WRITE);
    return pages;
}

/* Unmap a stream's chunk; locked. Its place may be written again later, if it is in this recording. */
static void release(ffm_stream *stream)
{
    if (stream->chunk == NULL)
        return;
    const ffm_ring_place place = {stream->offset, stream->chunk->capacity, ffm_now()};
    const bool over = stream->chunk->kind == FFM_CHUNK_OPERATIONS || stream->chunk->kind == FFM_CHUNK_SAMPLES;
    /* Not through the C library: the watch would look at the system call of a thread that ends, and take locks that
     * others hold when they come here. */
    ffm_kernel(SYS_munmap, (uint64_t)stream->chunk, stream->chunk->capacity, 0, 0);
    stream->chunk = NULL;
    if (sink.kept != 0 && over && stream->recording == sink.number)
        ffm_ring_add(&place);
}

/* A chunk of so many bytes, or of at least `least` if an old one becomes it. */
static ffm_chunk *new_chunk(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t capacity, size_t least)
{
    ffm_chunk *chunk = NULL;
    const uint64_t before = lock();
    if (sink.header != NULL && file_is_open()) {
        uint64_t offset = 0, bytes = capacity;
        chunk = old_chunk(least, &offset, &bytes);
        const bool fresh = chunk == NULL;
        if (fresh)
            chunk = fresh_chunk(capacity, &offset);
        if (chunk != NULL) {
            *chunk = (ffm_chunk){.kind = kind, .thread = thread, .capacity = bytes, .first = stream->written};
            if (fresh)
                __atomic_store_n(&sink.header->file_bytes, offset + capacity, __ATOMIC_RELEASE);
            release(stream);
            stream->chunk = chunk;
            stream->offset = offset;
            stream->recording = sink.number;
        }
    }
    unlock(before);
    return chunk;
}

/* The runner writes it into the file, which needs nobody's help in a process that is stopped or blocked. */
static uint64_t finished(void)
{
    return sink.header == NULL ? 0 : __atomic_load_n(&sink.header->finished, __ATOMIC_RELAXED);
}

void ffm_sink_left_out(uint64_t start)
{
    const uint64_t end = finished();
    if (end != 0 && start < end)
        __atomic_fetch_add(&sink.header->unfinished, 1, __ATOMIC_RELAXED);
}

bool ffm_sink_takes(void)
{
    return ffm_sink_is_own() && finished() == 0;
}

void ffm_sink_lost(void)
{
    if (sink.header != NULL)
        __atomic_fetch_add(&sink.header->lost, 1, __ATOMIC_RELAXED);
}

bool ffm_sink_next_chunk(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes)
{
    size_t capacity = stream->chunk == NULL ? FIRST_CHUNK : stream->chunk->capacity * 2;
    if (capacity > LARGEST_CHUNK)
        capacity = LARGEST_CHUNK;
    while (capacity < sizeof *stream->chunk + bytes)
        capacity *= 2;
    const size_t needed = sizeof *stream->chunk + bytes;
    const size_t worth = capacity < WORTH_REUSING ? capacity : WORTH_REUSING, least = needed > worth ? needed : worth;
    if (new_chunk(stream, kind, thread, capacity, least) == NULL) {
        ffm_sink_lost();
        return false;
    }
    return true;
}

void *ffm_sink_reserve(ffm_stream *stream, uint32_t kind, uint32_t thread, size_t bytes)
{
    if (!ffm_sink_takes())
        return NULL;
    if ((stream->chunk == NULL || sizeof *stream->chunk + stream->chunk->used + bytes > stream->chunk->capacity) &&
        !ffm_sink_next_chunk(stream, kind, thread, bytes))
        return NULL;
    return (char *)(stream->chunk + 1) + stream->chunk->used;
}

void ffm_sink_commit(ffm_stream *stream, size_t bytes)
{
    stream->written++;
    __atomic_store_n(&stream->chunk->used, stream->chunk->used + bytes, __ATOMIC_RELEASE);
}

void ffm_sink_release(ffm_stream *stream)
{
    const uint64_t before = lock();
    release(stream);
    unlock(before);
}

void ffm_sink_set_fault_cost(uint64_t nanoseconds)
{
    if (sink.header != NULL)
        sink.header->fault_cost = nanoseconds;
}

uint32_t ffm_sink_new_thread(void)
{
    return sink.header == NULL ? 0 : __atomic_fetch_add(&sink.header->threads, 1, __ATOMIC_RELAXED);
}

void ffm_sink_note_python(uint32_t version, bool readable)
{
    const uint64_t before = lock();
    sink.python_version = version;
    sink.python_readable = readable;
    if (sink.header != NULL) {
        sink.header->python_version = version;
        sink.header->python_readable = readable;
    }
    unlock(before);
}

void ffm_sink_note_ordinary_memory(uint64_t now, const char *kernel, uint32_t offset, uint32_t cause)
{
    const uint64_t before = lock();
    if (sink.header != NULL && sink.header->ordinary_memory == 0) {
        sink.header->ordinary_memory = now;
        sink.header->ordinary_cause = cause;
        sink.header->ordinary_offset = offset;
        if (kernel != NULL)
            strncpy(sink.header->ordinary_kernel, kernel, sizeof sink.header->ordinary_kernel - 1);
    }
    unlock(before);
}
