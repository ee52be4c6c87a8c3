/* How threads and programs end. */
#define _GNU_SOURCE
#include "bad.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

THING(by_signal)
{
    signal(atoi(option), SIG_DFL);
    raise(atoi(option));
}

THING(null)
{
    *(volatile int *)8 = 1;
}
THING(illegal)
{
    __asm__ volatile("ud2");
}
THING(breakpoint)
{
    __asm__ volatile("int3");
}
THING(division)
{
    volatile int one = 1, zero = 0;
    one = one / zero;
}
static int deeper(volatile char *outer)
{
    volatile char room[4096];
    room[0] = *outer;
    return *outer == 1 ? 0 : deeper(room) + room[0];
}
THING(overflow)
{
    volatile char first = 0;
    printf("%d\n", deeper(&first));
}
THING(beyond_file)
{
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("empty", 0), 0);
    printf("%d\n", page[0]);
}
THING(wild_jump)
{
    ((void (*)(void))(uintptr_t)0x1234)();
}
THING(non_canonical)
{
    *(volatile int *)(uintptr_t)0x8000000000000000u = 1;
}
THING(ends)
{
    exit(atoi(option));
}
THING(ends_at_once)
{
    _exit(atoi(option));
}
THING(ends_quickly)
{
    quick_exit(4);
}
THING(ends_by_call)
{
    syscall(SYS_exit_group, 5);
}
THING(aborts)
{
    abort();
}
void late_use(void)
{
    use_gpu();
    say("late\n");
}
void late_abort(void)
{
    abort();
}
void late_exit(void)
{
    _exit(6);
}
THING(at_exit_use)
{
    if (context == NULL)
        begin(); /* the driver's own functions of this kind come before those that were named earlier */
    atexit(late_use);
}
THING(at_exit_abort)
{
    atexit(late_abort);
}
THING(at_exit_exit)
{
    atexit(late_exit);
}
static void *endless(void *unused)
{
    for (;;)
        pause();
    return unused;
}
static void *busy(void *unused)
{
    for (volatile long turn = 0;; turn++)
        ;
    return unused;
}
static void *endless_use(void *unused)
{
    p_cuCtxSetCurrent(context);
    for (;;) {
        CUdeviceptr device;
        if (p_cuMemAlloc_v2(&device, 64) == CUDA_SUCCESS)
            p_cuMemFree_v2(device);
    }
    return unused;
}
void *use(void *unused)
{
    if (p_cuInit != NULL)
        CHECK(cuCtxSetCurrent, context);
    use_gpu();
    return unused;
}
static void *exits(void *unused)
{
    exit(7);
    return unused;
}
void start(void *(*what)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, what, NULL);
}
void run_thread(void *(*what)(void *), const pthread_attr_t *how)
{
    pthread_t thread;
    if (pthread_create(&thread, how, what, NULL) == 0)
        pthread_join(thread, NULL);
    else
        say("no thread\n");
}
THING(endless_threads)
{
    for (int i = 0; i < 8; i++)
        start(endless);
    start(busy);
}
THING(endless_users)
{
    start(endless_use);
    start(endless_use);
    usleep(20000);
}
THING(exit_in_thread)
{
    start(exits);
    pause();
}
static void *uses_and_exits(void *unused)
{
    use(unused);
    exit(0);
}
THING(main_ends_first)
{
    pthread_t thread;
    pthread_create(&thread, NULL, uses_and_exits, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}
static void *cancelled(void *unused)
{
    CHECK(cuCtxSetCurrent, context);
    for (;;) {
        pthread_testcancel();
        usleep(100);
    }
    return unused;
}
THING(cancels)
{
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}
static pthread_key_t key;
static void use_at_thread_end(void *value)
{
    (void)value;
    use_gpu();
}
static void *has_destructor(void *unused)
{
    CHECK(cuCtxSetCurrent, context);
    pthread_setspecific(key, &key);
    return unused;
}
THING(thread_destructor)
{
    if (context == NULL)
        begin();
    pthread_key_create(&key, use_at_thread_end);
    run_thread(has_destructor, NULL);
}
THING(many_threads)
{
    enum { MANY = 64 };
    pthread_t threads[MANY];
    for (int i = 0; i < MANY; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
}
