#include "thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "new_pages.h"
#include "thread_memory.h"

/* One pointer in static TLS: accessed without a call, also in signal handlers. */
static __thread ffm_thread *self __attribute__((tls_model("initial-exec")));

/* Its number in the recording, plus 1; 0 if it has none yet. */
static __thread uint32_t reserved __attribute__((tls_model("initial-exec")));

static uint32_t states; /* how many threads have got one */

static void (*on_new)(uint64_t name, uint32_t number);
static void (*on_end)(void);

static pthread_key_t at_exit_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void forget_left_out(ffm_thread *thread)
{
    if (thread->left_out != NULL)
        munmap(thread->left_out, thread->left_out_bytes);
    thread->left_out = NULL;
}

static void at_thread_exit(void *state)
{
    ffm_thread *thread = state;
    if (on_end != NULL)
        on_end();
    ffm_packer_release(&thread->operations);
    ffm_packer_release(&thread->contents);
    ffm_packer_release(&thread->parts);
    ffm_packer_release(&thread->gpu_times);
    ffm_sink_release(&thread->resumptions);
    forget_left_out(thread);
    ffm_thread_memory_gone((uint64_t)pthread_self());
    self = NULL;
    munmap(thread, sizeof *thread);
}

static void make_key(void)
{
    pthread_key_create(&at_exit_key, at_thread_exit);
}

void ffm_thread_on_new(void (*handler)(uint64_t name, uint32_t number))
{
    on_new = handler;
}

void ffm_thread_on_end(void (*handler)(void))
{
    on_end = handler;
}

bool ffm_thread_is_only(void)
{
    return __atomic_load_n(&states, __ATOMIC_RELAXED) <= 1;
}

uint32_t ffm_thread_number(void)
{
    if (reserved == 0)
        reserved = ffm_sink_new_thread() + 1;
    return reserved - 1;
}

ffm_thread *ffm_thread_self(void)
{
    if (__builtin_expect(!ffm_sink_is_own(), 0))
        return NULL;
    if (__builtin_expect(self == NULL, 0)) {
        pthread_once(&key_once, make_key);
        self = ffm_new_pages(sizeof *self);
        if (self == NULL)
            return NULL;
        __atomic_add_fetch(&states, 1, __ATOMIC_RELAXED);
        self->number = ffm_thread_number();
        self->kernel_id = (uint32_t)gettid();
        pthread_setspecific(at_exit_key, self);
        if (on_new != NULL)
            on_new((uint64_t)pthread_self(), self->number);
    }
    return self;
}

ffm_thread *ffm_thread_peek(void)
{
    return self;
}

void ffm_thread_after_fork(void)
{
    reserved = 0;
    states = self != NULL;
    if (self == NULL)
        return;
    /* The chunks are the parent's: unmap them without writing. */
    ffm_packer_release(&self->operations);
    ffm_packer_release(&self->contents);
    ffm_packer_release(&self->parts);
    ffm_packer_release(&self->gpu_times);
    ffm_sink_release(&self->resumptions);
    forget_left_out(self);
    memset(self, 0, sizeof *self);
    self->number = ffm_thread_number();
    self->kernel_id = (uint32_t)gettid();
}
