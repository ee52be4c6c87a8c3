/* Memory protection keys (pkeys(7)): pages that one thread may use, while each other thread faults there. A thread's
 * rights are in a register of its own, PKRU, so no page changes when another thread continues. A thread has two keys or
 * none: one for pages that no other thread may use, and one for pages that all others may read. Two more keys are no
 * thread's: they close pages to all, or to all who write. A thread can be admitted to all of these pages, while the
 * others still fault there. The processor, the kernel or the program may not allow any keys, and then nothing here does
 * anything. */
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

/* The calling thread's keys are free for other threads: no page has them any more. Under the lock of the ranges. */
void ffm_keys_give_back(void);

/* The key that closes a page to all threads, or lets them read there. 0: only the rights of the page can. */
uint32_t ffm_keys_closed(bool others_read);

/* The key for a page that needs two keys: it forbids what either of them forbids; 0 if there is none. */
uint32_t ffm_keys_both(uint32_t one, uint32_t other);

/* Whether all may read a page with this key. */
bool ffm_keys_let_read(uint32_t key);

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

/* Admit the calling thread to all pages with our keys, until it is expelled. Handlers that interrupt it are not
 * admitted. False if keys do not close pages. Expelling a thread that is not admitted does nothing. */
bool ffm_keys_admit(void);
void ffm_keys_expel(void);
bool ffm_keys_admitted(void);

/* The same for code that a handler has interrupted: to reading, or also to writing. False if the fault that the handler
 * handles has another cause than a key of ours. */
bool ffm_keys_admit_to(const siginfo_t *info, bool writing, ucontext_t *interrupted);
void ffm_keys_expel_from(ucontext_t *interrupted);
bool ffm_keys_admitted_to(const ucontext_t *interrupted);

/* In the handler of a fault: whether the thread merely lacked a right that it should have, to use its own pages or to
 * read pages that all may read. */
bool ffm_keys_lacked(const siginfo_t *info, const ucontext_t *interrupted);

#endif
