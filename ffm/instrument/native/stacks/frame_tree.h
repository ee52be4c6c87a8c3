/* Chains of frames, as a tree, because many of them share their ends. A node is a frame and the chain that it
 * continues. So one number stands for a whole chain, and what chains have in common is stored once. */
#ifndef FFM_FRAME_TREE_H
#define FFM_FRAME_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* `value` and `label` tell frames apart. */
typedef struct {
    uint64_t value;
    uint32_t label;
    uint32_t next; /* number of the node of the next frame; 0 for none */
} ffm_frame_node;

enum { FFM_FRAME_BLOCK = 1 << 14, FFM_FRAME_BLOCKS = 1 << 10, FFM_MOST_NODES = FFM_FRAME_BLOCK * FFM_FRAME_BLOCKS };

/* A zeroed tree is empty. Its numbers begin with 1. A node that has its number is read without a lock. */
typedef struct {
    ffm_frame_node *blocks[FFM_FRAME_BLOCKS];
    uint32_t *slots; /* numbers, found by the hash of their nodes; at most three quarters are taken */
    uint32_t mask;
    uint32_t count;
} ffm_frame_tree;

/* Number of a node; sets *fresh if it is new. 0 if memory is short or the tree is full. Under the caller's lock. */
uint32_t ffm_frame_tree_number(ffm_frame_tree *tree, const ffm_frame_node *node, bool *fresh);

/* The node with a number. */
static inline const ffm_frame_node *ffm_frame_tree_at(const ffm_frame_tree *tree, uint32_t number)
{
    return &tree->blocks[(number - 1) / FFM_FRAME_BLOCK][(number - 1) % FFM_FRAME_BLOCK];
}

/* In a forked child, in which nobody else reads it: forget all nodes. */
void ffm_frame_tree_clear(ffm_frame_tree *tree);

#endif
