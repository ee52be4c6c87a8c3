/* Part of collector_test.c: pinned memory that is downloaded to more than once. */
#ifndef FFM_DOWNLOADED_AGAIN_H
#define FFM_DOWNLOADED_AGAIN_H

void ffm_test_downloaded_again(void);

#endif
