#include "frame_tree.h"

#include "kernel.h"
#include "new_pages.h"

enum { FIRST_SLOTS = 1 << 12 };

static uint32_t start_of(const ffm_frame_node *node)
{
    const uint64_t behind = ((uint64_t)node->next << 32 | node->label) * 0x9E3779B97F4A7C15ULL;
    return (uint32_t)((node->value ^ behind) * 0xD6E8FEB86659FD93ULL >> 32);
}

static void put(uint32_t *slots, uint32_t mask, const ffm_frame_node *node, uint32_t number)
{
    uint32_t place = start_of(node) & mask;
    while (slots[place] != 0)
        place = (place + 1) & mask;
    slots[place] = number;
}

/* Not through the C library: the watch may look at the program's system calls, and takes locks for that. */
static void forget_slots(ffm_frame_tree *tree)
{
    if (tree->slots != NULL)
        ffm_kernel(SYS_munmap, (uint64_t)tree->slots, ((uint64_t)tree->mask + 1) * sizeof *tree->slots, 0, 0);
}

static bool grow_slots(ffm_frame_tree *tree)
{
    const uint32_t mask = tree->slots == NULL ? FIRST_SLOTS - 1 : 2 * tree->mask + 1;
    uint32_t *fresh = ffm_new_pages(((size_t)mask + 1) * sizeof *fresh);
    if (fresh == NULL)
        return false;
    for (uint32_t number = 1; number <= tree->count; number++)
        put(fresh, mask, ffm_frame_tree_at(tree, number), number);
    forget_slots(tree);
    tree->slots = fresh;
    tree->mask = mask;
    return true;
}

/* Room for one more node, and for its number. */
static bool make_room(ffm_frame_tree *tree)
{
    if (tree->count == FFM_MOST_NODES)
        return false;
    const bool full = tree->slots == NULL || tree->count / 3 >= (tree->mask + 1) / 4;
    if (full && !grow_slots(tree))
        return false;
    ffm_frame_node **block = &tree->blocks[tree->count / FFM_FRAME_BLOCK];
    if (*block == NULL)
        *block = ffm_new_pages(FFM_FRAME_BLOCK * sizeof **block);
    return *block != NULL;
}

uint32_t ffm_frame_tree_number(ffm_frame_tree *tree, const ffm_frame_node *node, bool *fresh)
{
    *fresh = false;
    for (uint32_t place = start_of(node); tree->slots != NULL; place++) {
        const uint32_t number = tree->slots[place & tree->mask];
        if (number == 0)
            break;
        const ffm_frame_node *at = ffm_frame_tree_at(tree, number);
        if (at->value == node->value && at->label == node->label && at->next == node->next)
            return number;
    }
    if (!make_room(tree))
        return 0;
    tree->blocks[tree->count / FFM_FRAME_BLOCK][tree->count % FFM_FRAME_BLOCK] = *node;
    put(tree->slots, tree->mask, node, ++tree->count);
    *fresh = true;
    return tree->count;
}

void ffm_frame_tree_clear(ffm_frame_tree *tree)
{
    forget_slots(tree);
    tree->slots = NULL;
    tree->count = 0; /* the blocks are written again */
}
