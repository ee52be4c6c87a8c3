#pragma GCC target("avx2")
#define FFM_HASH_BOX ffm_hash_box_avx2
#include "hash_box.h"
