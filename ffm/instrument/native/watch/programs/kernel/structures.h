/* What the kernel reads and writes in the program's memory through the structures that system calls take. All of it
 * counts as the program's accesses, and its pages are open until the call is over (aside.h). Where the kernel would
 * answer EFAULT, nothing is read here either. Arguments are those of the system call. */
#ifndef FFM_STRUCTURES_H
#define FFM_STRUCTURES_H

#include <stdbool.h>
#include <stdint.h>

/* A text, which the kernel reads. */
void ffm_structure_text(uint64_t start);

/* Some struct iovec, and the memory that they name. */
void ffm_structure_vectors(uint64_t start, uint64_t count, bool writing);

/* A struct msghdr; and those of sendmmsg or recvmmsg. */
void ffm_structure_message(uint64_t start, bool writing);
void ffm_structure_messages(uint64_t start, uint64_t count, bool writing);

/* process_vm_writev or process_vm_readv: what a process does with it to its own memory. */
void ffm_structure_other_process(const uint64_t *arguments, bool writing);

/* The sets of files of select or pselect6, and their time. */
void ffm_structure_file_sets(const uint64_t *arguments, uint64_t time_bytes);

/* A signal mask that is given by a structure. */
void ffm_structure_mask(uint64_t start);

/* The word that futex waits at or changes, a second one, and a time. */
void ffm_structure_word(const uint64_t *arguments);

/* A filter of sockets, or of system calls (struct sock_fprog). */
void ffm_structure_filter(uint64_t start);

/* What getsockopt and setsockopt take. */
void ffm_structure_option(const uint64_t *arguments, bool writing);

/* What semctl takes. */
void ffm_structure_semaphores(const uint64_t *arguments);

/* Another program's path, arguments and environment. */
void ffm_structure_executes(uint64_t path, uint64_t arguments, uint64_t environment);

/* Any argument may be an address, of something smaller than a page. */
void ffm_structure_unknown(const uint64_t *arguments);

/* In addition, any word of a structure may be the address of memory of which the kernel reads or writes as much as it
 * likes. */
void ffm_structure_addresses(const uint64_t *arguments, uint64_t start, uint64_t bytes);

/* The same for ioctl. */
void ffm_structure_control(const uint64_t *arguments);

#endif
