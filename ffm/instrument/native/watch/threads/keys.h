/* Memory protection keys (pkeys(7)): pages that one thread may use, while each other thread faults there. A thread's
 * rights are in a register of its own, PKRU, so no page changes when another thread continues. A thread has two keys or
 * none: one for pages that no other thread may use, and one for pages that all others may read. The processor, the
 * kernel or the program may not allow any, and then nothing here does anything. */
#ifndef FFM_KEYS_H
#define FFM_KEYS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Find out whether there are keys, and take some. */
void ffm_keys_open(void);

/* Whether pages may have keys, so that their key must be set whenever their protection is. */
bool ffm_keys_used(void);

/* One of the calling thread's own keys, with which it may use pages from now on, and others may read them or not; 0 if
 * it gets none. Under the lock of the ranges. */
uint32_t ffm_keys_take(bool others_read);

/* The calling thread's keys are free for others: no page has them any more. Under the lock of the ranges. */
void ffm_keys_give_back(void);

/* The key of a page that needs two of them, the stricter one if both are one thread's; 0 if they are not. */
uint32_t ffm_keys_both(uint32_t one, uint32_t other);

/* Whether a key is the calling thread's own. */
bool ffm_keys_are_mine(uint32_t key);

/* A thread begins, or a process: it has inherited the rights of the one that started it. */
void ffm_keys_join(void);

/* No thread gets a key from now on, and the program may have those that no thread has. Under the lock of the ranges. */
void ffm_keys_stop(void);

/* The program asks for a key, in the handler of the system call: the rights that the kernel gives to the handler are
 * the interrupted code's. Returns what the kernel answers. */
int64_t ffm_keys_program(const uint64_t *arguments, ucontext_t *interrupted);

/* The kernel takes a thread's rights away while a handler runs, also that of reading what others only write. At a
 * handler's beginning: give them back there; at its end: see to it that the interrupted code has them. */
void ffm_keys_enter(void);
void ffm_keys_leave(ucontext_t *interrupted);

/* In the handler of a fault: whether the thread only lacked a right that it has: to use its own pages, or to read pages
 * that all may read. */
bool ffm_keys_lacked(const siginfo_t *info, const ucontext_t *interrupted);

#endif
