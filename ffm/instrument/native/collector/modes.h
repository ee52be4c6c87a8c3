/* What stages ask of the collector. */
#ifndef FFM_MODES_H
#define FFM_MODES_H

/* What a stage needs besides the trace of operations. */
enum {
    FFM_MODE_CONTENTS = 1,     /* hash what transfers carry (stage 3) */
    FFM_MODE_WATCH = 2,        /* watch the host memory that transfers write or read (stages 3 and 4) */
    FFM_MODE_PLAN = 4,         /* watch only transfers whose stack is in the plan (stage 4) */
    FFM_MODE_HOST = 8,         /* record where the pageable host memory of transfers comes from (stage 2) */
    FFM_MODE_GPU_TIMES = 16,   /* time the work that is enqueued on the GPU (stage 3) */
    FFM_MODE_NO_ORDINARY = 32, /* the user says that no kernel uses ordinary memory by its address */
    FFM_MODE_CHOSEN = 64,      /* with a plan: everything else of stage 3, for the planned transfers alone */
    FFM_MODE_SAMPLES = 128,    /* sample what threads do between driver calls (stage 2) */
    FFM_MODE_NAMES = 256,      /* record devices and the names of kernels (stage 2) */
    FFM_MODE_LIVES = 512       /* record who starts and joins threads, and lets others go on (stage 2) */
};

#endif
