/* What the bad things of `bad` share. `bad THING [before|between]` uses the GPU, and does the thing before or between.
 */
#ifndef BAD_H
#define BAD_H

#include <cuda.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>

/* A bad thing, which the command line names. */
typedef struct {
    const char *name;
    void (*act)(void);
} thing;

#define THING(name)                                                                                                    \
    void name(void);                                                                                                   \
    __attribute__((section("things"), used)) static const thing name##_thing = {#name, name};                          \
    void name(void)

extern char **arguments;   /* of the program */
extern const char *option; /* its last argument, or an empty one */

/* ---- gpu.c: the driver, loaded when it is first used ------------------------------------------------------------- */

#define DRIVER(each)                                                                                                   \
    each(cuInit) each(cuDevicePrimaryCtxRetain) each(cuDevicePrimaryCtxRelease_v2) each(cuCtxSetCurrent)               \
        each(cuCtxGetCurrent) each(cuMemAlloc_v2) each(cuMemFree_v2) each(cuMemcpyHtoD_v2) each(cuMemcpyDtoH_v2)       \
            each(cuMemcpyHtoDAsync_v2) each(cuCtxSynchronize) each(cuStreamCreate) each(cuStreamDestroy_v2)            \
                each(cuStreamSynchronize) each(cuMemHostAlloc) each(cuMemFreeHost) each(cuCtxDestroy_v2)

#define DECLARE(name) extern typeof(name) *p_##name;
DRIVER(DECLARE)

/* Ends the program if the call fails. */
#define CHECK(name, ...) check(p_##name(__VA_ARGS__), #name)
void check(CUresult result, const char *call);

extern void *library;
extern CUcontext context;

void load(void);
void begin(void);
void use_gpu(void);
void say(const char *word);

/* ---- things, and parts of them, that others use ------------------------------------------------------------------ */

void null(void);
void illegal(void);
void breakpoint(void);
void division(void);
void beyond_file(void);
void ends(void);
void late_use(void);
void late_abort(void);
void late_exit(void);
void *use(void *unused);
void start(void *(*what)(void *));
void run_thread(void *(*what)(void *), const pthread_attr_t *how);
void exec_self(void);
void await_child(pid_t child);
void in_child(void (*what)(void));
void child(void);
void double_fork(void);
void nobody(void);
void handler_says(int number);
void handle(int number, void (*how)(int), int flags);

#endif
