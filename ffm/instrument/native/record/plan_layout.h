/* The binary layout of plans, files that stages write for the collector in the program. Like layout.h, this file may
 * contain only plain declarations. */

/* What a plan begins with, which a stage writes for a library in the program. The keys of the stacks to watch follow:
 * FFM_KEY_BYTES each, sorted. */
typedef struct {
    char magic[8]; /* "FFMWATCH" */
    uint32_t version;
    uint32_t count;
} ffm_plan_header;

/* Bytes of a kernel's parameters that it never reads, counted from the first parameter. A file of these begins with an
 * ffm_plan_header whose magic is "FFMUNREA", and is in the order of these fields. */
typedef struct {
    uint64_t name_high, name_low; /* XXH3-128 of the kernel's name */
    uint32_t begin, end;          /* before `end` */
} ffm_unread;
