/* Words in the program's memory that the kernel writes when a thread ends, to wake others: those of its robust mutexes,
 * and the one that is cleared then. The kernel says nothing if it cannot write there, and whoever waits for the word
 * sleeps for ever. */
#ifndef FFM_THREAD_WORDS_H
#define FFM_THREAD_WORDS_H

#include <stdint.h>

/* The word at this address will be cleared when a thread ends; 0 for none. */
void ffm_thread_words_cleared(uint64_t word);

/* The same for the one that the kernel knows of the calling thread. */
void ffm_thread_words_here(void);

/* The calling thread is about to end. */
void ffm_thread_words_end(void);

#endif
