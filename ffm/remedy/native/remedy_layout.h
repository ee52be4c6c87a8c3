/* The binary layout of what goes into the correcting library and of what it counts. Read by the C compiler and, as it
 * stands, by ffm/remedy/layout.py, so it holds only plain declarations. */

enum { FFM_REMEDY_VERSION = 4 };

/* What may be done at a call site. */
enum {
    FFM_REMEDY_POOL_ALLOCATION = 1, /* take the block from the pool */
    FFM_REMEDY_POOL_FREE = 2,       /* put the block into the pool, without waiting */
    FFM_REMEDY_SKIP = 4,            /* an explicit synchronization: return at once */
    FFM_REMEDY_ASYNCHRONOUS = 8,    /* a transfer through pinned staging */
    FFM_REMEDY_REUSE = 16,          /* an upload from what is on the device already */
    FFM_REMEDY_NO_WAIT = 32         /* a transfer: nobody relied on its own wait */
};

/* A plan is a file of these, sorted by key. A call belongs to a site when both stack and function agree. */
typedef struct {
    uint8_t key[16];   /* of the stack, as in recordings */
    uint32_t function; /* index in the catalogue */
    uint32_t actions;  /* FFM_REMEDY_… */
} ffm_remedy_site;

/* Why a process is not corrected (any more). */
enum {
    FFM_STOP_NONE = 0,
    FFM_STOP_FUNCTIONS = 1, /* a driver function that corrections build on is missing or could not be replaced */
    FFM_STOP_CONTEXTS = 2,  /* a second context: work there is ordered by what would be removed here */
    FFM_STOP_STREAMS = 3,   /* more streams than fences are kept for */
    FFM_STOP_SHARED = 4     /* memory or contexts in forms whose users cannot be seen */
};

typedef struct {
    char magic[8]; /* "FFMREMED" */
    uint32_t version;
    uint32_t process_id;
    uint32_t sites; /* ffm_remedy_tally that follow, one for each site of the plan */
    uint32_t stopped;

    /* Operations removed. */
    uint64_t synchronizations; /* explicit ones that returned at once */
    uint64_t free_waits;       /* frees that did not wait */
    uint64_t frees;            /* that never reached the driver */
    uint64_t allocations;      /* served from the pool */
    uint64_t uploads_copied;   /* uploads that became a copy on the device */
    uint64_t uploads_nothing;  /* uploads that became nothing */
    uint64_t uploads_staged;   /* synchronous uploads that became asynchronous */
    uint64_t uploads_kept;     /* asynchronous uploads that were sent, and copied on the device for the next ones */
    uint64_t downloads_staged; /* synchronous downloads that became asynchronous */
    uint64_t transfer_waits;   /* transfers that did not wait */

    /* Fallbacks: corrections that were not safe then and there, so that the program waited as without them. */
    uint64_t waits_host_memory;  /* the GPU was writing or reading host memory */
    uint64_t waits_questions;    /* the program asked for the state or the times of work */
    uint64_t waits_destination;  /* a download's destination cannot be closed until it is delivered */
    uint64_t waits_source;       /* a download's source is no memory whose allocation and free are followed */
    uint64_t uploads_unfollowed; /* an upload's destination is no such memory */
    uint64_t uploads_pinned;     /* the GPU will read an upload's source later: it may be another one then */
    uint64_t waits_capture;      /* a stream was being captured */
    uint64_t waits_driver;       /* the driver refused part of a correction */
    uint64_t deliveries_touched; /* downloads delivered because the program touched their destination */
    uint64_t deliveries_called;  /* downloads delivered because a call was about to read or write it */
    uint64_t unknown_calls;      /* of planned functions, at stacks that are not in the plan */

    uint64_t deliveries;         /* downloads delivered in all */
    uint64_t deliveries_awaited; /* of these, those for which the GPU had to be waited for */
    uint64_t fences;             /* orders on the device that stand for removed waits */
    uint64_t pool_bytes;         /* idle in the pool now */
    uint64_t pool_peak_bytes;    /* at most */
    uint64_t pool_returned;      /* blocks given back to the driver */
    uint64_t cache_bytes;        /* device copies of uploads */
    uint64_t staging_bytes;      /* pinned host memory */
    uint64_t own_pages_bytes;    /* host memory that pages of their own cost heap blocks, at most */
    uint64_t started;            /* CLOCK_MONOTONIC, nanoseconds */
    uint64_t lookup_calls;       /* stacks looked up */
    uint64_t launches_unread;    /* kernels whose parameters the driver does not tell, beside pinned memory */
} ffm_remedy_counters;

typedef struct {
    uint64_t calls;
    uint64_t corrected;
    uint64_t waited; /* fell back */
} ffm_remedy_tally;
