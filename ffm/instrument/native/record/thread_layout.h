/* What a recording says about the threads of a program. Like layout.h, this file may contain only plain
 * declarations. */

/* Kinds of records about the life of a thread. */
enum {
    FFM_LIFE_STARTED = 1, /* the thread `by` has started it, with pthread_create(3) */
    FFM_LIFE_JOINED = 2,  /* the thread `by` has joined it */
    FFM_LIFE_FIRST = 3    /* it made its first driver call, and got the number `number` */
};

/* A moment in the life of a thread (stage 2). Threads are named as pthread_self(3) does, which can name several
 * threads one after the other. So threads that never call the driver, or were started before it was loaded, have
 * records, too. */
typedef struct {
    uint64_t time; /* of FFM_LIFE_STARTED before the call, of FFM_LIFE_JOINED after it */
    uint64_t name;
    uint64_t by;
    uint32_t number;
    uint32_t kind;
} ffm_life;

enum {
    FFM_MOST_LOCK_WAITS = 1 << 16, /* the first of a process are recorded */
    FFM_SHORTEST_LOCK_WAIT = 20000 /* nanoseconds: waking a thread takes about as long */
};

/* A thread's wait, outside of driver calls, that ended because another thread let go what it waited for: a lock, a
 * condition variable, a semaphore or a barrier of the C library (stage 2). */
typedef struct {
    uint64_t since;
    uint64_t released; /* when the other thread was about to let it go, for the last time before the wait ended */
    uint32_t waiter;   /* their numbers */
    uint32_t releaser;
} ffm_lock_wait;

enum { FFM_NO_THREAD = 0xFFFFFFFF };

/* What the kernel counted for a thread by its end, or by the process's, in nanoseconds (stage 2). The first record of a
 * process belongs to no thread, and is from the beginning of the recording. */
typedef struct {
    uint64_t time;
    uint64_t process_ran; /* processor time of all threads of the process */
    uint64_t ran;         /* of the thread */
    uint64_t delayed;     /* it could have run, and had no processor */
    uint32_t number;      /* of the thread, or FFM_NO_THREAD */
    uint32_t processors;  /* on how many the process may run, in its first record */
} ffm_processor_time;
