#include "samples.h"

#define UNW_LOCAL_ONLY
#include <errno.h>
#include <libunwind.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "clock.h"
#include "handlers.h"
#include "instruments.h"
#include "modules.h"
#include "portion.h"
#include "python_frames.h"
#include "sample_clock.h"
#include "signal_mask.h"
#include "sink.h"
#include "stacks.h"
#include "thread.h"
#include "unwinding.h"

/* The inner frames are enough to find the program's own code. */
enum { MOST_FRAMES = 32, MOST_PYTHON_FRAMES = 16 };

/* A sample may take this part of the time that it stands for; otherwise the next ones are left out. */
enum { SHARE = 64 };

/* Frames of the handler itself, up to the interrupted code: the unwinder's, ours, and the kernel's. */
enum { MOST_OWN_FRAMES = 8 };

typedef struct sampler {
    ffm_sample_clock clock;
    ffm_stream stream;
    uint64_t elapsed; /* processor time of the thread, in nanoseconds */
    uint64_t spent;   /* of it, in the handler */
    uint64_t owed;    /* that no sample stands for yet */
    pid_t thread;     /* in the kernel; 0 if it is not listed */
    char *stack;      /* for samples of a thread with a small alternate stack; NULL until it is needed */
    struct sampler *next;
} sampler;

/* Threads that were started before samples were wanted get their clocks when they are. */
static struct {
    pthread_mutex_t lock; /* also of the clocks; no handler of a signal takes it */
    sampler *listed;
    pthread_key_t key; /* calls at the end of each */
} started = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static bool wanted;
static struct sigaction before; /* what the program had asked for */

static __thread sampler self __attribute__((tls_model("initial-exec")));

/* For the one thread that unwinds alone; a signal handler's stack is small. */
static uint64_t python_words[MOST_PYTHON_FRAMES * FFM_PYTHON_WORDS];

static uint32_t least(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

/* Return addresses of the interrupted code, innermost first; only the first one is where it was. The unwinder's quick
 * way starts here, in the handler. */
static __attribute__((noinline)) uint32_t walk(const ucontext_t *interrupted, uint64_t *frames)
{
    const ffm_registers registers = ffm_registers_in(interrupted);
    uint64_t all[MOST_OWN_FRAMES + MOST_FRAMES];
    const int found = unw_backtrace((void **)all, MOST_OWN_FRAMES + MOST_FRAMES);
    const uint32_t depth = found < 0 ? 0 : (uint32_t)found;
    for (uint32_t i = 0; i < depth && i < MOST_OWN_FRAMES; i++) {
        if (all[i] != registers.instruction)
            continue;
        const uint32_t count = least(depth - i, MOST_FRAMES);
        memcpy(frames, all + i, count * sizeof *frames);
        return count;
    }
    bool truncated;
    return ffm_stack_walk(&registers, frames, MOST_FRAMES, &truncated);
}

static bool has_instruments(const uint64_t *frames, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        if (ffm_instruments_hold(frames[i]))
            return true;
    return false;
}

static void record(const ffm_thread *thread, uint64_t time, const uint64_t *frames, uint32_t depth)
{
    uint32_t python = 0;
    if (ffm_python_is_readable())
        python = ffm_python_walk_interrupted(python_words, MOST_PYTHON_FRAMES) / FFM_PYTHON_WORDS;
    const size_t bytes = sizeof(ffm_sample) + depth * sizeof(ffm_frame) + python * sizeof(ffm_python_frame);
    ffm_sample *out = ffm_sink_reserve(&self.stream, FFM_CHUNK_SAMPLES, ffm_thread_number(), bytes);
    if (out == NULL)
        return;
    *out = (ffm_sample){.time = time,
                        .operation = thread == NULL ? 0 : thread->operations.stream.written,
                        .nanoseconds = self.owed,
                        .frames = depth,
                        .python_frames = python};
    ffm_frame *native = (ffm_frame *)(out + 1);
    for (uint32_t i = 0; i < depth; i++) {
        const ffm_module_place place = ffm_module_of(frames[i] - (i > 0));
        const uint64_t base = place.number == FFM_NO_MODULE ? 0 : place.base;
        native[i] = (ffm_frame){.module = place.number, .offset = frames[i] - base};
    }
    ffm_python_frame *functions = (ffm_python_frame *)(native + depth);
    for (uint32_t i = 0; i < python; i++)
        functions[i] = ffm_python_place_of(python_words + (size_t)i * FFM_PYTHON_WORDS).frame;
    ffm_sink_commit(&self.stream, bytes);
    self.owed = 0;
}

/* Whether the thread is in the program, and not in a call, a wait or a hook. Those may hold locks. */
static bool in_program(const ffm_thread *thread, const ucontext_t *interrupted)
{
    const bool calls = thread != NULL && (thread->depth != 0 || thread->bypass != 0 || thread->wait_depth != 0);
    return !calls && ffm_sink_is_own() && ffm_portion_takes_samples() &&
           !ffm_instruments_hold((uint64_t)interrupted->uc_mcontext.gregs[REG_RIP]);
}

/* Also runs if the thread is cancelled meanwhile, which glibc 2.36 does in libunwind's system calls. */
static void end_alone(const bool *alone)
{
    if (*alone)
        ffm_unwinding_end_alone();
}

static void take(const ucontext_t *interrupted, uint64_t nanoseconds)
{
    ffm_thread *thread = ffm_thread_peek();
    self.elapsed += nanoseconds;
    if (!in_program(thread, interrupted))
        return;
    self.owed += nanoseconds;
    if (self.spent > self.elapsed / SHARE)
        return;
    const bool alone __attribute__((cleanup(end_alone))) = ffm_unwinding_begin_alone();
    if (!alone)
        return;
    const uint64_t since = ffm_now(), used_before = ffm_thread_time();
    uint64_t frames[MOST_FRAMES];
    const uint32_t depth = walk(interrupted, frames);
    const bool hooked = has_instruments(frames, depth);
    if (hooked)
        self.owed -= nanoseconds;
    else
        record(thread, since, frames, depth);
    /* Other programs may have had the processor meanwhile: without the sample, too. */
    const uint64_t used = ffm_thread_time() - used_before;
    self.spent += used;
    if (thread == NULL)
        return;
    if (hooked) /* this call measures its own time, which is not as usual */
        thread->usual_after = 0;
    else
        thread->probe_after += (uint32_t)used;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

/* An alternate stack of 8 KiB, as runtimes of languages give to threads, holds the kernel's frame and little else. */
enum { STACK_BYTES = 64 << 10 };

void ffm_samples_take_on(char *top, const ucontext_t *interrupted, uint64_t nanoseconds)
    __attribute__((visibility("hidden")));
void ffm_samples_take(const ucontext_t *interrupted, uint64_t nanoseconds) __attribute__((visibility("hidden")));

void ffm_samples_take(const ucontext_t *interrupted, uint64_t nanoseconds)
{
    take(interrupted, nanoseconds);
}

/* Calls ffm_samples_take(interrupted, nanoseconds) on another stack, which is unwound through. */
__asm__(".pushsection .text\n"
        ".globl ffm_samples_take_on\n"
        ".hidden ffm_samples_take_on\n"
        ".type ffm_samples_take_on, @function\n"
        "ffm_samples_take_on:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "mov %rdi, %rsp\n"
        "mov %rsi, %rdi\n"
        "mov %rdx, %rsi\n"
        "call ffm_samples_take\n"
        "mov %rbp, %rsp\n"
        "pop %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ffm_samples_take_on, . - ffm_samples_take_on\n"
        ".popsection\n");

static bool runs_on(const stack_t *alternate)
{
    const uint64_t here = (uint64_t)__builtin_frame_address(0);
    return !(alternate->ss_flags & SS_DISABLE) && here - (uint64_t)alternate->ss_sp < alternate->ss_size;
}

static bool has_stack(void)
{
    if (self.stack != NULL)
        return true;
    void *pages = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    self.stack = pages == MAP_FAILED ? NULL : pages;
    return self.stack != NULL;
}

static void take_with_room(const ucontext_t *interrupted, uint64_t nanoseconds)
{
    if (!runs_on(&interrupted->uc_stack) || interrupted->uc_stack.ss_size >= STACK_BYTES)
        take(interrupted, nanoseconds);
    else if (has_stack())
        ffm_samples_take_on(self.stack + STACK_BYTES, interrupted, nanoseconds);
}

static void pass(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    const uint64_t nanoseconds = ffm_sample_clock_told(&self.clock, info);
    if (nanoseconds == 0)
        pass(number, info, context);
    else
        take_with_room(context, nanoseconds);
    errno = error;
}

/* Locked. */
static void start(sampler *one)
{
    if (wanted && !one->clock.runs)
        ffm_sample_clock_start(&one->clock, one->thread);
}

void ffm_samples_open(void)
{
    if (wanted) /* in a forked child, which has its parent's handler */
        return;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    const uint64_t mask = ~FFM_SIGNALS_OURS;
    memcpy(&action.sa_mask, &mask, sizeof mask);
    pthread_mutex_lock(&started.lock);
    wanted = sigaction(FFM_SAMPLE_SIGNAL, &action, &before) == 0;
    for (sampler *one = started.listed; one != NULL; one = one->next)
        start(one);
    pthread_mutex_unlock(&started.lock);
}

/* A thread that blocks the signal may wait for it in a system call, which it must not interrupt. */
static bool blocks_signal(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || sigismember(&blocked, FFM_SAMPLE_SIGNAL) != 0;
}

static void end_thread(void *unused)
{
    (void)unused;
    ffm_samples_thread_ends();
}

/* A child has one of the parent's threads. Before there is a recording, only this tells. */
static void in_child(void)
{
    if (self.thread == gettid())
        return; /* ffm_samples_after_fork has been here */
    pthread_mutex_init(&started.lock, NULL);
    started.listed = NULL;
    if (self.thread == 0)
        return;
    self.clock = (ffm_sample_clock){.file = -1, .timer = -1};
    self.thread = gettid();
    self.next = NULL;
    started.listed = &self;
}

static void make_key(void)
{
    pthread_key_create(&started.key, end_thread);
    pthread_atfork(NULL, NULL, in_child);
}

void ffm_samples_thread(void)
{
    if (blocks_signal())
        return;
    ffm_stack_prepare();
    pthread_once(&key_once, make_key);
    pthread_setspecific(started.key, &self);
    pthread_mutex_lock(&started.lock);
    if (self.thread == 0) {
        self.thread = gettid();
        self.next = started.listed;
        started.listed = &self;
    }
    start(&self);
    pthread_mutex_unlock(&started.lock);
}

void ffm_samples_thread_ends(void)
{
    pthread_mutex_lock(&started.lock);
    for (sampler **place = &started.listed; *place != NULL; place = &(*place)->next) {
        if (*place == &self) {
            *place = self.next;
            break;
        }
    }
    self.thread = 0;
    ffm_sample_clock_stop(&self.clock);
    pthread_mutex_unlock(&started.lock);
    ffm_sink_release(&self.stream);
    if (self.stack != NULL)
        munmap(self.stack, STACK_BYTES);
    self.stack = NULL;
}

void ffm_samples_thread_takes_signals(void)
{
    if (self.thread == 0)
        return;
    pthread_mutex_lock(&started.lock);
    ffm_sample_clock_take_back(&self.clock);
    pthread_mutex_unlock(&started.lock);
}

void ffm_samples_after_fork(void)
{
    const bool listed = self.thread != 0;
    pthread_mutex_init(&started.lock, NULL);
    started.listed = NULL;
    ffm_sink_release(&self.stream);
    self = (sampler){0}; /* the kernel gave the child neither the timer nor the event */
    if (listed)
        ffm_samples_thread();
}
