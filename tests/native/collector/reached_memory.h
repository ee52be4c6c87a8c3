/* Part of collector_test.c: which memory kernels reach, also through other things than their parameters. */
#ifndef FFM_REACHED_MEMORY_H
#define FFM_REACHED_MEMORY_H

void ffm_test_memory_freed_during_a_launch(void);
void ffm_test_viewed_memory(void);
void ffm_test_rows_counted_from_one(void);

#endif
