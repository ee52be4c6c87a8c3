/* Device memory for the temporaries of the sparse library. */
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "check.h"
#include "variant.h"

namespace sparse
{

/* Blocks that are free at the moment, by size. All work is on one stream, so a block may be handed out again
 * while earlier work still uses it. */
inline std::map<std::size_t, std::vector<void *>> kept_temporaries;

inline void *allocate_temporary(std::size_t bytes)
{
    std::vector<void *> &kept = kept_temporaries[bytes];
    void *block = nullptr;
    if (kept.empty()) {
        check(cudaMalloc((void **)&block, bytes));
    } else {
        block = kept.back();
        kept.pop_back();
    }
    return block;
}

inline void free_temporary(void *block, std::size_t bytes)
{
    if (original) {
        // problem: free of a temporary
        check(cudaFree(block));
    } else {
        kept_temporaries[bytes].push_back(block);
    }
}

/* At the end of the program. */
inline void free_kept_temporaries()
{
    for (auto &[bytes, blocks] : kept_temporaries) {
        for (void *block : blocks) {
            // once: teardown
            check(cudaFree(block));
        }
        blocks.clear();
    }
}

} // namespace sparse
