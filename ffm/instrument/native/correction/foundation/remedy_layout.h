/* The binary layout of the correcting library's plan and counters. The C compiler and ffm/remedy/layout.py both read it
 * as it stands, so it may contain only plain declarations. */

enum { FFM_REMEDY_VERSION = 9 };

/* What may be done at a call site. */
enum {
    FFM_REMEDY_POOL_ALLOCATION = 1, /* serve the block from the pool */
    FFM_REMEDY_POOL_FREE = 2,       /* put the block into the pool, without waiting */
    FFM_REMEDY_SKIP = 4,            /* an explicit synchronization: return at once */
    FFM_REMEDY_ASYNCHRONOUS = 8,    /* a transfer through pinned staging */
    FFM_REMEDY_REUSE = 16,          /* an upload from a copy already on the device */
    FFM_REMEDY_NO_WAIT = 32,        /* a transfer: nothing relied on its own wait */
    FFM_REMEDY_CLOCK = 64           /* the next read of a clock may rely on the wait that is removed */
};

/* What a mode asks of the library. */
enum { FFM_FOLLOW_CLOCKS = 1 /* replace the functions that read clocks */ };

/* A plan is a file with this, and then sites, sorted by key. */
typedef struct {
    char magic[8]; /* "FFMSITES" */
    uint32_t version;
    uint32_t sites;
    uint64_t memory; /* bytes that corrections may take, of host memory and of device memory each */
} ffm_remedy_plan;

/* A call belongs to a site if both stack and function agree. */
typedef struct {
    uint8_t key[16];   /* of the stack, as in recordings */
    uint32_t function; /* index in the catalogue */
    uint32_t actions;  /* FFM_REMEDY_… */
    uint32_t unit;     /* sites of one unit are corrected together; numbered from 0 */
    uint32_t pace;     /* recorded calls, at the one site of a unit whose calls pace its trial (trials.h); else 0 */
} ffm_remedy_site;

/* A unit whose pacing site was recorded less often than this is not compared while the program runs. */
enum { FFM_TRIAL_LEAST_CALLS = 16 };

/* What takes less than one part in this many of the time is not worth noticing. */
enum { FFM_TRIAL_NOTICEABLE = 100 };

/* Why a process is not, or no longer, corrected. */
enum {
    FFM_STOP_NONE = 0,
    FFM_STOP_FUNCTIONS = 1, /* a driver function that corrections rely on is missing or could not be replaced */
    FFM_STOP_CONTEXTS = 2,  /* a second context: waits that are removed here order work there */
    FFM_STOP_STREAMS = 3,   /* more streams than fences can cover */
    FFM_STOP_SHARED = 4,    /* memory or contexts shared in ways whose users cannot be seen */
    FFM_STOP_ERROR = 5      /* work failed, so the context can do no more: all calls are left to the driver */
};

typedef struct {
    char magic[8]; /* "FFMREMED" */
    uint32_t version;
    uint32_t process_id;
    uint32_t sites; /* of the plan: as many ffm_remedy_tally follow, and then as many ffm_remedy_trial */
    uint32_t stopped;

    /* Operations removed. */
    uint64_t synchronizations; /* explicit ones that returned at once */
    uint64_t free_waits;       /* frees that did not wait */
    uint64_t frees;            /* frees that never reached the driver */
    uint64_t allocations;      /* allocations served from the pool */
    uint64_t uploads_copied;   /* uploads that became a copy on the device */
    uint64_t uploads_nothing;  /* uploads that were dropped */
    uint64_t uploads_staged;   /* synchronous uploads that became asynchronous */
    uint64_t uploads_kept;     /* asynchronous uploads that were sent, with a copy kept on the device for later ones */
    uint64_t downloads_staged; /* synchronous downloads that became asynchronous */
    uint64_t transfer_waits;   /* transfers that did not wait */

    /* Fallbacks: corrections that were not safe at that moment, so that the program waited as it does uncorrected. */
    uint64_t waits_host_memory;  /* the GPU was writing or reading host memory */
    uint64_t waits_questions;    /* the program asked for the state or the times of work */
    uint64_t waits_clocks;       /* the program read a clock */
    uint64_t waits_unseen;       /* it may read clocks unseen */
    uint64_t waits_destination;  /* a download's destination could not be closed until it was delivered */
    uint64_t waits_source;       /* a download's source is not memory whose allocation and free are tracked */
    uint64_t uploads_unfollowed; /* an upload's destination is not such memory */
    uint64_t uploads_pinned;     /* the GPU reads an upload's source later, when it may have changed */
    uint64_t waits_capture;      /* a stream was being captured */
    uint64_t waits_driver;       /* the driver refused part of a correction */
    uint64_t deliveries_touched; /* downloads delivered because the program touched their destination */
    uint64_t deliveries_called;  /* downloads delivered because a call was about to read or write the destination */
    uint64_t deliveries_clocks;  /* downloads delivered because the program read a clock */
    uint64_t unknown_calls;      /* planned functions called from stacks that are not in the plan */

    uint64_t deliveries;         /* downloads delivered in all */
    uint64_t deliveries_awaited; /* of these, the ones that had to wait for the GPU */
    uint64_t fences;             /* events recorded to keep an order that removed waits promised */
    uint64_t pool_bytes;         /* idle in the pool now */
    uint64_t pool_peak_bytes;    /* the maximum of that */
    uint64_t pool_returned;      /* blocks returned to the driver */
    uint64_t cache_bytes;        /* device copies of uploads */
    uint64_t staging_bytes;      /* pinned host memory */
    uint64_t own_pages_bytes;    /* maximum of the host memory spent on giving heap blocks their own pages */
    uint64_t started;            /* CLOCK_MONOTONIC, nanoseconds */
    uint64_t lookup_calls;       /* stacks looked up */
    uint64_t launches_unread; /* kernels launched next to pinned memory whose parameters the driver does not report */
} ffm_remedy_counters;

typedef struct {
    uint64_t calls;
    uint64_t corrected;
    uint64_t waited;   /* fell back */
    uint64_t original; /* not corrected because its unit's trial compared, or had found that it does not pay */
} ffm_remedy_tally;

/* The trial of a unit, in the place of its number. */
typedef struct {
    uint32_t corrects; /* whether the unit is corrected between comparisons */
    uint32_t pairs;    /* comparisons so far */
    double slower;     /* median over them of (corrected - original) / the larger, times between its calls */
    double deviation;  /* median distance from that */
    uint64_t spent_ns; /* in corrected calls and for late deliveries */
} ffm_remedy_trial;
