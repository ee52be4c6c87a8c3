/* Part of collector_test.c: sources of uploads that are sent more than once. */
#ifndef FFM_SOURCES_SENT_AGAIN_H
#define FFM_SOURCES_SENT_AGAIN_H

enum { FFM_TEST_SOURCES_WRITTEN = 8 }; /* accesses that are recorded */

void ffm_test_sources_sent_again(void);

#endif
