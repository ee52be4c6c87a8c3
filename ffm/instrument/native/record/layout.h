/* The binary layout of a recording: its file, and the records of operations, memory and kernels. stack_layout.h and
 * thread_layout.h have further records. The C compiler and ffm/instrument/recording/layout.py both read these files as
 * they stand, so they may contain only plain declarations.
 *
 * A recording is one file per process: a header in the first FFM_HEADER_BYTES, then consecutive chunks. Each chunk has
 * records of one kind and one thread. A chunk's `used` grows after a record is complete, so the file of a killed writer
 * is readable up to its last record. All times are CLOCK_MONOTONIC nanoseconds.
 *
 * Packed records. Operations, contents, parts, accesses, extents and GPU times are many, and differ little from each
 * other. Their structures are read as 64-bit words, and written as differences: the first word's to the previous record
 * of the chunk (an operation's start to the previous one's end), each other one's to the same word of the last record
 * of the chunk in the same slot. The duration of an operation is written without its wait. A difference d is written as
 * 2d, and as -2d - 1 if it is negative, in 0, 2, 4 or 8 bytes. Records that look alike, such as those of one call
 * stack, share one of FFM_PACKED_SLOTS slots. What precedes the first record of a slot, or of a chunk, is 0.
 *
 * The differences of all records follow the header of the chunk. From its end backwards lies a number of 32 bits for
 * each record: the slot in its low byte, and then, in two bits for each word, how the difference is written (0 to 3 for
 * 0, 2, 4 and 8 bytes). */

enum { FFM_HEADER_BYTES = 4096, FFM_VERSION = 20, FFM_KEY_BYTES = 16, FFM_BUILD_ID_BYTES = 20 };

typedef struct {
    char magic[8]; /* "FFMTRACE" */
    uint32_t version;
    uint32_t process_id;
    uint32_t parent_id;
    int32_t rank; /* under an MPI launcher, otherwise -1 */
    uint32_t mode;
    uint32_t threads; /* thread numbers handed out */
    uint64_t opened;  /* nanoseconds */
    uint64_t file_bytes;
    uint64_t lost;            /* operations for which the disk had no space */
    uint32_t python_version;  /* PY_VERSION_HEX of the interpreter in the process; 0 for none */
    uint32_t python_readable; /* whether stacks hold its frames */
    uint64_t ordinary_memory; /* when a kernel first received what may be the address of ordinary memory; otherwise 0 */
    uint32_t ordinary_cause;  /* why it counts as one: FFM_ORDINARY_... */
    uint32_t ordinary_offset; /* bytes from the start of its parameters, if the place is known */
    char ordinary_kernel[2048]; /* its name, or the beginning of it; empty if it is not known */
    uint64_t
        fault_cost;    /* nanoseconds from an access to a watched page to the watch's handler, measured at the start */
    uint64_t finished; /* when ffm, which writes this itself, ended the recording before the process ended; or 0 */
    uint64_t unfinished; /* calls that had begun by then and returned later: they are not recorded */
    uint64_t kept;       /* nanoseconds before the end of which everything is recorded; 0 for all */
    uint64_t dropped;    /* operations from before that whose place was taken by later ones */
    char catalogue_digest[64];
    char executable[1024];
} ffm_header;

/* Why a kernel counts as using ordinary memory. */
enum {
    FFM_ORDINARY_USES = 1,     /* its machine code may use what it is given at a place as an address */
    FFM_ORDINARY_NO_CODE = 2,  /* the same, but nothing is known of its machine code */
    FFM_ORDINARY_ANYTHING = 3, /* the driver does not tell which parameters it has, or these are of no known form */
    FFM_ORDINARY_GRAPH = 4     /* it is in a graph */
};

enum { FFM_PACKED_SLOTS = 256, FFM_PACKED_SIZES = 8 /* the bit where the sizes begin */ };

/* Kinds of chunks. */
enum {
    FFM_CHUNK_OPERATIONS = 1,
    FFM_CHUNK_STACKS = 2,
    FFM_CHUNK_MODULES = 3,
    FFM_CHUNK_CONTENTS = 4,
    FFM_CHUNK_ACCESSES = 5,
    FFM_CHUNK_PYTHON_CODES = 6,
    FFM_CHUNK_PARTS = 7,
    FFM_CHUNK_HOST_BLOCKS = 8,
    FFM_CHUNK_HOST_RELEASES = 9,
    FFM_CHUNK_HOST_USES = 10,
    FFM_CHUNK_EXTENTS = 11,
    FFM_CHUNK_GPU_TIMES = 12,
    FFM_CHUNK_STRETCHES = 13,
    FFM_CHUNK_RESUMPTIONS = 14,
    FFM_CHUNK_SAMPLES = 15,
    FFM_CHUNK_LIVES = 16,
    FFM_CHUNK_CONTEXTS = 17,
    FFM_CHUNK_KERNELS = 18,
    FFM_CHUNK_LOCK_WAITS = 19,
    FFM_CHUNK_FRAMES = 20,
    FFM_CHUNK_PYTHON_FRAMES = 21,
    FFM_CHUNK_JOINED = 22,
    FFM_CHUNK_GIVEN = 23,
    FFM_CHUNK_PROCESSOR_TIMES = 24
};

typedef struct {
    uint32_t kind;
    uint32_t thread;   /* number in order of first use, from 0 */
    uint64_t capacity; /* bytes, including this header */
    uint64_t used;     /* bytes of records that are complete; if they are packed, their number */
    uint64_t first;    /* number of the first record within its thread and kind */
} ffm_chunk;

/* Flags of an operation. */
enum {
    FFM_OPERATION_PRIVATE = 1,   /* a wait under no public call */
    FFM_OPERATION_TRUNCATED = 2, /* the stack was deeper than could be recorded */
    FFM_OPERATION_HOST_SOURCE = 4,
    FFM_OPERATION_HOST_DESTINATION = 8,
    FFM_OPERATION_ON_CPU =
        16, /* a synchronous copy that the driver makes on the CPU: it is done when the call returns */
    FFM_OPERATION_DEVICE_ONLY = 16, /* launch of a kernel that can reach no memory of the host (stage 3, if there are
                                       several devices) */
    FFM_OPERATION_CAPTURED = 32,    /* the call became part of a graph: nothing was executed */
    FFM_OPERATION_RECORDS = 64,     /* launch of a graph that may record events */
    FFM_OPERATION_HOLDS = 128,      /* launch of a graph that may wait for what the CPU does */
    FFM_OPERATION_CONTEXT_SHIFT =
        8 /* the high byte is the context, in order of first use; the last number stands for all further ones */
};

enum { FFM_FUNCTION_PRIVATE = 0xFFFF };

/* One traced driver call, or one private wait. */
typedef struct {
    uint64_t start;
    uint64_t duration;
    uint64_t wait;        /* part of duration inside the driver's internal wait function */
    uint64_t bytes;       /* or, of a call that loads device code, or launches a kernel, FFM_CODE_WITHOUT_VARIABLES
                             (stage 3) */
    uint64_t destination; /* or the address allocated, freed, set; of a launch, an allocation on the device that its
                             parameters lead to, FFM_LEADS_NOWHERE, or 0 if it may use any memory (stage 3) */
    uint64_t source;      /* or the flags of a stream that is made, or the later one of two events; of a launch, the
                             `list` of what its kernel is given, or 0 if that is not known (stage 3) */
    uint64_t stream;
    uint64_t handle; /* event, context, function or other object of the call */
    uint32_t probe;  /* nanoseconds spent in the probe since the thread's previous call */
    uint32_t stack;
    uint32_t after_wait; /* nanoseconds of a download's own time after its first wait began, FFM_LONGEST_AFTER_WAIT if
                            it is more; or, of a launch, the size of its kernel (FFM_LAUNCH_BLOCKS_SHIFT), or 0 if that
                            is not known (stage 2) */
    uint16_t waits;      /* entries of the wait function, 65,535 if there are more */
    int16_t result;      /* CUresult */
    uint16_t function;   /* index in the catalogue, or FFM_FUNCTION_PRIVATE */
    uint16_t flags;
    uint32_t thread_id; /* kernel's number of the thread */
} ffm_operation;

enum { FFM_LONGEST_AFTER_WAIT = 0x7FFFFFFF };

/* The size of a kernel: the threads of a block in so many bits, and above them how many blocks there are, but no more
 * than FFM_LAUNCH_MOST_BLOCKS. */
enum { FFM_LAUNCH_BLOCKS_SHIFT = 11, FFM_LAUNCH_MOST_BLOCKS = 0xFFFFF };

/* The kernel's parameters contain no address of device memory. No address is this. */
enum { FFM_LEADS_NOWHERE = 1 };

/* The code has no variables in the device's memory, except constants; or the kernel uses none. */
enum { FFM_CODE_WITHOUT_VARIABLES = 1 };

/* Flags of a content record. */
enum {
    FFM_CONTENT_DESTINATION_KNOWN = 1, /* the destination was examined before the copy */
    FFM_CONTENT_DOWNLOAD = 2           /* the bytes came from the device */
};

/* Size of the parts that are hashed one by one if a transfer has several. */
enum { FFM_PART_BYTES = 65536 };

/* What one copy of a transfer carried (stage 3). */
typedef struct {
    uint64_t operation; /* number within its thread */
    uint64_t bytes;
    uint64_t destination;
    uint64_t hash[2]; /* XXH3-128 of the bytes, row by row; if there are several parts, of the parts' hashes */
    uint64_t destination_hash[2]; /* of the destination before the copy, in the same way; of an upload's, which is
                                     compared, `hash` if it is equal, and any other value if it is not */
    uint32_t operation_thread;
    uint32_t flags;
    uint32_t shape; /* equal for copies to the same rows: hash of widths and pitches at the destination */
    uint32_t reserved;
    uint64_t written; /* of a download: when a kernel that may have written its source was last launched; 0 for never */
} ffm_content;

/* In its place, if any work may have written the source: it is not device memory whose allocation is known. */
#define FFM_WRITES_UNKNOWN 0xFFFFFFFFFFFFFFFF

/* One part of FFM_PART_BYTES (the last may be shorter) of a copy without gaps. */
typedef struct {
    uint64_t operation;
    uint64_t destination;
    uint64_t hash[2];
    uint32_t operation_thread;
    uint32_t flags; /* those of the content */
} ffm_part;

/* Kinds of accesses. */
enum {
    FFM_ACCESS_READ = 1,
    FFM_ACCESS_WRITE = 2,
    FFM_ACCESS_SYSTEM_CALL = 3,
    FFM_ACCESS_RELEASED = 4,  /* unmapped, replaced or returned to the system */
    FFM_ACCESS_DRIVER = 5,    /* read by the driver on the CPU, for the program, as the source of another transfer */
    FFM_ACCESS_UNWATCHED = 6, /* could not be watched: counts as used */
    FFM_ACCESS_CLOCK = 7,     /* not an access to memory: the program or a library read a clock */
    /* Not accesses to memory either, but what orders threads; `operation_thread` does it: */
    FFM_ACCESS_INITIAL = 8,  /* initialises the semaphore at `address` with `operation`, or opens it */
    FFM_ACCESS_POST = 9,     /* is about to post it; in a signal handler if `operation` is FFM_POSTED_UNSEEN */
    FFM_ACCESS_TAKE = 10,    /* has waited for it */
    FFM_ACCESS_JOIN = 11,    /* has joined the thread with the number `address` */
    FFM_ACCESS_OTHER = 12,   /* reads or writes the memory of the process `address`, or may from now on */
    FFM_ACCESS_BARRIER = 13, /* initialises the barrier at `address` for `operation` threads */
    FFM_ACCESS_ARRIVE = 14,  /* is about to wait at it */
    FFM_ACCESS_LEAVE = 15,   /* has waited there */
    FFM_ACCESS_PRINTED = 16  /* was in this `operation`, or past it, when it was seen that the driver has written to the
                                program's output since the time `address`; at UINT64_MAX if it may at any time */
};

/* In place of a semaphore's first value or a barrier's number of threads, and larger than any: other processes, which
 * are not seen, can post it or arrive there. */
#define FFM_POSTED_UNSEEN 0xFFFFFFFF

/* How many handovers between threads a process records. Beyond them, posts and arrivals of others are not seen. */
enum { FFM_MOST_HANDOVERS = 65536 };

/* Flags of an access. */
enum {
    FFM_ACCESS_INHERITED =
        1,                   /* by a forked child, to memory inherited from its parent: the operation is the parent's */
    FFM_ACCESS_LAST = 2,     /* the memory is not watched any more */
    FFM_ACCESS_EARLY = 4,    /* a clock read before the recording began; by which thread is unknown */
    FFM_ACCESS_ASKED = 8,    /* a clock read by a function with which a script does that */
    FFM_ACCESS_PRESUMED = 16 /* not watched to its use: in stage 3, each time that it was, a thread used it after the
                                same wait, or with the same results that it uses now; of FFM_ACCESS_UNWATCHED: counts as
                                used now, so that later uses need no later wait */
};

/* An access to the host memory of a transfer, or to memory that a kernel may have written; or a clock read. */
typedef struct {
    uint64_t time;
    uint64_t address;   /* touched; for a clock, whether it is the processor's own counter */
    uint64_t operation; /* of the transfer or launch, within `operation_thread`; for a clock, the number of operations
                           before */
    uint64_t armed;     /* time at which the program continued after the wait that armed the watch */
    uint32_t operation_thread; /* for a clock, the thread that read it */
    uint32_t stack;            /* of the access, if it was captured */
    uint16_t kind;
    uint16_t flags;
    uint32_t thread_id; /* kernel's number of the accessing thread */
} ffm_access;

/* Kinds of extents. */
enum {
    FFM_EXTENT_FOLLOWED = 1, /* arrived, and watched from now on */
    FFM_EXTENT_TOUCHED = 2,
    FFM_EXTENT_LOST = 3,  /* no longer watched: all of it may have been touched */
    FFM_EXTENT_INTACT = 4 /* from its call on, nobody could touch it without a record of that, or of its loss */
};

/* Bytes of a download that were watched, or touched (stage 3). What was watched and not touched was overwritten, freed
 * or left alone until the program's end. */
typedef struct {
    uint64_t operation; /* of the transfer, within `operation_thread` */
    uint64_t start;
    uint64_t bytes;
    uint32_t operation_thread;
    uint32_t kind;
} ffm_extent;

/* Instead of an operation's number: nothing lay between the two events. Their distance is part of every measured
 * time. */
enum { FFM_EVENTS_ALONE = 0x7FFFFFFF };

/* How long the GPU worked at an operation (stage 3). */
typedef struct {
    uint64_t operation;   /* number within its thread, or FFM_EVENTS_ALONE */
    uint64_t nanoseconds; /* between the events around it */
    uint32_t operation_thread;
    uint32_t arriving; /* how many of these passed before its call was over, if the GPU was idle; 0 if it was not */
} ffm_gpu_time;

/* Functions that allocate or free pageable host memory. */
enum {
    FFM_ALLOCATOR_MALLOC = 1,
    FFM_ALLOCATOR_CALLOC = 2,
    FFM_ALLOCATOR_REALLOC = 3,
    FFM_ALLOCATOR_REALLOCARRAY = 4,
    FFM_ALLOCATOR_MEMALIGN = 5,
    FFM_ALLOCATOR_ALIGNED_ALLOC = 6,
    FFM_ALLOCATOR_POSIX_MEMALIGN = 7,
    FFM_ALLOCATOR_MMAP = 8,
    FFM_ALLOCATOR_FREE = 9
};

/* A block of pageable host memory that a transfer used (stage 2). */
typedef struct {
    uint64_t bytes;
    uint32_t number; /* from 1 */
    uint32_t stack;  /* of its allocation */
    uint32_t allocator;
    uint32_t reserved;
} ffm_host_block;

/* Where such a block was freed. */
typedef struct {
    uint32_t number;
    uint32_t stack;
    uint32_t allocator;
    uint32_t reserved;
} ffm_host_release;

/* Transfers at a stack used a block. The same pair may occur again. */
typedef struct {
    uint32_t number;
    uint32_t stack;
} ffm_host_use;

/* A stretch of the run that is measured, if only a portion of it is. Counted calls are those that transfer, set,
 * launch, wait, allocate or free. */
typedef struct {
    uint64_t opened, closed;   /* nanoseconds; `closed` is 0 if it lasts to the end of the recording */
    uint64_t judged, unjudged; /* the part of it that is judged; the rest shows what lies at its edges */
    uint64_t settled;          /* when the last call ended that began before it and is not recorded; 0 for none */
    uint64_t calls;            /* counted ones of the process before it */
    uint64_t calls_closed;     /* and before its end */
    uint64_t iteration;        /* the number of the marked iteration that is judged, from 0 */
} ffm_stretch;

/* The first operation of its function in its thread after others were not recorded: `left_out` of them since the start
 * of the recording. */
typedef struct {
    uint64_t operation; /* number within its thread */
    uint32_t left_out;
    uint32_t function; /* index in the catalogue, or FFM_FUNCTION_PRIVATE */
} ffm_resumption;

/* Where a thread of the program was between two driver calls (stage 2), followed by `frames` ffm_frame and
 * `python_frames` ffm_python_frame, each innermost first, without those too far out. The first ffm_frame is an address
 * that was executed, the others are return addresses. */
typedef struct {
    uint64_t time;
    uint64_t operation;   /* so many operations of its thread were recorded before it */
    uint64_t nanoseconds; /* of the thread's processor time that it stands for */
    uint32_t frames;
    uint32_t python_frames;
} ffm_sample;

/* A CUDA context (stage 2). */
typedef struct {
    uint32_t number; /* as in the flags of an operation */
    int32_t device;  /* ordinal in its process */
    uint8_t uuid[16];
    uint32_t multiprocessors;
    uint32_t threads; /* that one of them can run at once */
} ffm_context;

/* The name of what a launch was given as its function, followed by `bytes` of text, padded to a multiple of 8 (stage
 * 2). It is valid from `time` until the same handle has another one. */
typedef struct {
    uint64_t time;
    uint64_t handle;
    uint32_t bytes;
    uint32_t reserved;
} ffm_kernel_name;

/* From now on, a kernel that is given the address of either allocation may find that of the other in memory (stage 3).
 * If one is 0, any kernel may find the other. */
typedef struct {
    uint64_t one;
    uint64_t other;
} ffm_joined;

/* A kernel's parameters contain, at an offset from the first one, an address in the allocation at a place. Launches
 * whose parameters differ in nothing else have the same list (stage 3). */
typedef struct {
    uint64_t list; /* from 1 */
    uint64_t offset;
    uint64_t allocation;
} ffm_given;
