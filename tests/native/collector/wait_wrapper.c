/* wait_wrapper COLLECTOR: calls a function through the wrapper of a wait function, and fails if that changes what the
 * function or its caller sees: registers, words on the stack, and the way out for an unwinder. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* %rax, %rcx, %rdx, %rsi, %rdi, %r8 to %r11, %xmm0 to %xmm15, words on the stack. */
enum { GENERAL = 9, VECTOR = 16, WORDS = 6 };

typedef struct {
    uint64_t general[GENERAL];
    uint64_t vector[VECTOR][2];
    uint64_t words[WORDS];
} state;

state given, seen, left, found;
void *wrapper;

void call_with_state(void);
void function_that_sees(void);

__asm__(".pushsection .text\n"
        ".macro load state\n"
        "leaq \\state(%rip), %rbx\n"
        "movq 0x00(%rbx), %rax\n movq 0x08(%rbx), %rcx\n movq 0x10(%rbx), %rdx\n movq 0x18(%rbx), %rsi\n"
        "movq 0x20(%rbx), %rdi\n movq 0x28(%rbx), %r8\n movq 0x30(%rbx), %r9\n movq 0x38(%rbx), %r10\n"
        "movq 0x40(%rbx), %r11\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "movups 0x48 + 16 * \\n(%rbx), %xmm\\n\n"
        ".endr\n"
        ".endm\n"
        ".macro store state\n"
        "leaq \\state(%rip), %rbx\n"
        "movq %rax, 0x00(%rbx)\n movq %rcx, 0x08(%rbx)\n movq %rdx, 0x10(%rbx)\n movq %rsi, 0x18(%rbx)\n"
        "movq %rdi, 0x20(%rbx)\n movq %r8, 0x28(%rbx)\n movq %r9, 0x30(%rbx)\n movq %r10, 0x38(%rbx)\n"
        "movq %r11, 0x40(%rbx)\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "movups %xmm\\n, 0x48 + 16 * \\n(%rbx)\n"
        ".endr\n"
        ".endm\n"
        ".globl call_with_state\n"
        ".type call_with_state, @function\n"
        "call_with_state:\n"
        ".cfi_startproc\n"
        "pushq %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "leaq given(%rip), %rbx\n"
        ".irp n, 5,4,3,2,1,0\n"
        "pushq 0x148 + 8 * \\n(%rbx)\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".endr\n"
        "load given\n"
        "call *wrapper(%rip)\n"
        "store found\n"
        "addq $48, %rsp\n"
        ".cfi_adjust_cfa_offset -48\n"
        "popq %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_with_state, . - call_with_state\n"
        ".globl function_that_sees\n"
        ".type function_that_sees, @function\n"
        "function_that_sees:\n"
        ".cfi_startproc\n"
        "pushq %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "store seen\n"
        ".irp n, 0,1,2,3,4,5\n"
        "movq 16 + 8 * \\n(%rsp), %rax\n"
        "movq %rax, 0x148 + 8 * \\n(%rbx)\n"
        ".endr\n"
        "call look_out\n"
        "load left\n"
        "popq %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size function_that_sees, . - function_that_sees\n"
        ".popsection\n");

static int reached_main;
static void *of_main;

__attribute__((used)) void look_out(void)
{
    void *frames[32];
    const int depth = backtrace(frames, 32);
    for (int i = 0; i < depth; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) != 0 && info.dli_saddr == of_main)
            reached_main = 1;
    }
}

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        failures++;
    }
}

/* A thread that is cancelled in the function ends, and unwinds through the wrapper. */
static int cleaned;

static void clean(void *nothing)
{
    (void)nothing;
    cleaned = 1;
}

static void wait_to_be_cancelled(void)
{
    for (;;)
        pthread_testcancel();
}

static void *cancelled(void *wait)
{
    pthread_cleanup_push(clean, NULL);
    ((void (*)(void))wait)();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int count, char **arguments)
{
    void *collector = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (collector == NULL)
        return 2;
    void *(*wrapper_at)(uint32_t) = (void *(*)(uint32_t))dlsym(collector, "ffm_collector_wait_wrapper");
    void (*bind)(uint32_t, void *, void *) =
        (void (*)(uint32_t, void *, void *))dlsym(collector, "ffm_collector_wait_bind");
    of_main = (void *)main;
    for (size_t i = 0; i < sizeof given / 8; i++) {
        ((uint64_t *)&given)[i] = 0x1111111111111111u * (i + 1);
        ((uint64_t *)&left)[i] = ~(0x0101010101010101u * (i + 1));
    }
    uint32_t last = 0;
    for (uint32_t place = 0; wrapper_at(place) != NULL; last = place++) {
        memset(&seen, 0, sizeof seen);
        memset(&found, 0, sizeof found);
        reached_main = 0;
        wrapper = wrapper_at(place);
        bind(place, (void *)function_that_sees, (void *)function_that_sees);
        call_with_state();
        expect(memcmp(&seen, &given, sizeof given) == 0, "the function sees something else than it was given");
        expect(memcmp(&found, &left, offsetof(state, words)) == 0, "its caller sees something else than it has left");
        expect(reached_main, "an unwinder does not find the way out");
    }
    expect(last > 0, "there is no wrapper");
    bind(last, (void *)wait_to_be_cancelled, (void *)wait_to_be_cancelled);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, cancelled, wrapper_at(last));
    pthread_cancel(thread);
    pthread_join(thread, &result);
    expect(result == PTHREAD_CANCELED && cleaned, "a thread is not cancelled in it");
    return failures != 0;
}
