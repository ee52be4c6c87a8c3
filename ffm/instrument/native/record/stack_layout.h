/* How a recording describes call stacks, their frames and the code these are in. Like layout.h, this file may contain
 * only plain declarations. */

/* A distinct call stack, with the function of the driver that is called from there: one line of an interpreter, or of
 * what calls C for it, calls many. Its FFM_INNER_FRAMES innermost frames are a chain, and those outside of them another
 * one; likewise those of its Python functions. Stacks differ little in their outer frames, and little in their inner
 * ones: so most chains belong to many of them.
 *
 * In Python, one place can show several native stacks: the interpreter specializes its instructions as a program runs,
 * and then takes other paths through its own code. They count as one stack here, with the frames seen first. */
typedef struct {
    uint32_t number;
    uint32_t inner;        /* number of an ffm_chained_frame, the outermost of its chain; 0 for none */
    uint32_t outer;        /* likewise, the innermost of its chain */
    uint32_t python_inner; /* the same of ffm_chained_python_frame */
    uint32_t python_outer;
    uint32_t truncated; /* whether its outer end was cut off because it was deeper than can be recorded */
    uint8_t key[16];    /* the same in every run: XXH3-128 of the frames' build-ids and offsets; with Python frames, of
                           these (file, function, line, column) and of the native frames outside of the interpreter;
                           and of the name of the function of the driver that is called from there */
} ffm_stack;

/* A frame and the rest of its chain: `next` is the number of the next frame, or 0. Frames are numbered from 1 as they
 * are recorded, and `next` is recorded before the frame that names it. */
typedef struct {
    uint32_t next;
    uint32_t module; /* as in ffm_frame */
    uint64_t offset;
} ffm_chained_frame;

/* The same for Python functions, with numbers of their own. The highest bit of the column is set if it is an entry (as
 * in ffm_python_frame). */
typedef struct {
    uint32_t next;
    uint32_t code;
    uint32_t line;
    uint32_t column;
} ffm_chained_python_frame;

enum { FFM_INNER_FRAMES = 12, FFM_COLUMN_BITS = 31 };

/* The most frames of a stack, and the most stacks of a process: all their numbers are below. */
enum { FFM_MAX_FRAMES = 192, FFM_MAX_PYTHON_FRAMES = 128, FFM_MOST_STACKS = 1 << 20 };

typedef struct {
    uint32_t module; /* FFM_NO_MODULE if no file is mapped */
    uint32_t reserved;
    uint64_t offset; /* from the module's load base; without a module, the address itself */
} ffm_frame;

enum { FFM_NO_MODULE = 0xFFFFFFFF };

/* An active Python function. The interpreter calls itself for some frames: those are entries, and each has a native
 * frame of its evaluation function. */
typedef struct {
    uint32_t code; /* FFM_NO_CODE for an entry whose function was not on the stack */
    uint32_t line;
    uint32_t column; /* of the expression's first byte, from 1; 0 if unknown */
    uint32_t flags;
} ffm_python_frame;

enum { FFM_PYTHON_ENTRY = 1 };
enum { FFM_NO_CODE = 0xFFFFFFFF };

/* A Python function, followed by its file and its qualified name in UTF-8, padded together to a multiple of 8. */
typedef struct {
    uint32_t number;
    uint32_t first_line;
    uint32_t file_bytes;
    uint32_t name_bytes;
} ffm_python_code;

/* A mapped file, followed by `path_bytes` of path, padded to a multiple of 8. */
typedef struct {
    uint32_t number;
    uint32_t path_bytes;
    uint64_t base;
    uint8_t build_id[20];
    uint32_t build_id_bytes;
} ffm_module;
