#include "intervals.h"

/* Scattered, so that the tree is balanced whatever order ranges come in. */
static uint32_t priority(uint32_t number)
{
    uint32_t mixed = number * 0x9E3779B1u;
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77u;
    return mixed ^ mixed >> 13;
}

/* Node 0 is never written, and reaches nowhere. */
static void measure(const ffm_intervals *tree, uint32_t number)
{
    ffm_interval *node = &tree->nodes[number];
    uint64_t furthest = node->end;
    if (tree->nodes[node->left].furthest > furthest)
        furthest = tree->nodes[node->left].furthest;
    if (tree->nodes[node->right].furthest > furthest)
        furthest = tree->nodes[node->right].furthest;
    node->furthest = furthest;
}

/* Put a node, or none, in the place of its parent's child. */
static void replace(ffm_intervals *tree, uint32_t parent, uint32_t child, uint32_t by)
{
    if (parent == 0)
        tree->root = by;
    else if (tree->nodes[parent].left == child)
        tree->nodes[parent].left = by;
    else
        tree->nodes[parent].right = by;
    if (by != 0)
        tree->nodes[by].parent = parent;
}

/* Exchange a node with its parent, which becomes its child. */
static void rotate_up(ffm_intervals *tree, uint32_t number)
{
    ffm_interval *nodes = tree->nodes, *node = &nodes[number];
    uint32_t parent = node->parent, inner;
    replace(tree, nodes[parent].parent, parent, number);
    if (nodes[parent].left == number) {
        inner = node->right;
        node->right = parent;
        nodes[parent].left = inner;
    } else {
        inner = node->left;
        node->left = parent;
        nodes[parent].right = inner;
    }
    nodes[parent].parent = number;
    if (inner != 0)
        nodes[inner].parent = parent;
    measure(tree, parent);
    measure(tree, number);
}

void ffm_intervals_add(ffm_intervals *tree, uint32_t number, uint64_t start, uint64_t end)
{
    ffm_interval *nodes = tree->nodes;
    uint32_t parent = 0;
    for (uint32_t at = tree->root; at != 0; at = start < nodes[at].start ? nodes[at].left : nodes[at].right) {
        parent = at;
        if (end > nodes[at].furthest)
            nodes[at].furthest = end;
    }
    nodes[number] = (ffm_interval){.start = start, .end = end, .furthest = end, .parent = parent};
    if (parent == 0)
        tree->root = number;
    else if (start < nodes[parent].start)
        nodes[parent].left = number;
    else
        nodes[parent].right = number;
    while (nodes[number].parent != 0 && priority(number) > priority(nodes[number].parent))
        rotate_up(tree, number);
}

void ffm_intervals_remove(ffm_intervals *tree, uint32_t number)
{
    ffm_interval *nodes = tree->nodes, *node = &nodes[number];
    while (node->left != 0 && node->right != 0)
        rotate_up(tree, priority(node->left) > priority(node->right) ? node->left : node->right);
    uint32_t parent = node->parent;
    replace(tree, parent, number, node->left != 0 ? node->left : node->right);
    for (uint32_t at = parent; at != 0; at = nodes[at].parent)
        measure(tree, at);
}

uint32_t ffm_intervals_around(const ffm_intervals *tree, uint64_t address)
{
    const ffm_interval *nodes = tree->nodes;
    uint32_t best = 0, at = tree->root;
    while (at != 0 && nodes[at].furthest > address) {
        if (nodes[at].start > address) {
            at = nodes[at].left;
            continue;
        }
        if (nodes[at].end > address || nodes[nodes[at].left].furthest > address)
            best = at;
        at = nodes[at].right;
    }
    if (best == 0 || nodes[best].end > address)
        return best;
    /* All that is left of it starts before the address. */
    at = nodes[best].left;
    while (nodes[nodes[at].right].furthest > address || nodes[at].end <= address)
        at = nodes[nodes[at].right].furthest > address ? nodes[at].right : nodes[at].left;
    return at;
}

uint32_t ffm_intervals_from(const ffm_intervals *tree, uint64_t address)
{
    uint32_t first = 0, at = tree->root;
    while (at != 0) {
        if (tree->nodes[at].start >= address) {
            first = at;
            at = tree->nodes[at].left;
        } else {
            at = tree->nodes[at].right;
        }
    }
    return first;
}

uint32_t ffm_intervals_within(const ffm_intervals *tree, uint64_t start, uint64_t end, uint32_t *numbers, uint32_t most)
{
    enum { DEPTH = 64, STEPS = 1024 };
    const ffm_interval *nodes = tree->nodes;
    uint32_t left_to_visit[DEPTH], waiting = 0, found = 0;
    if (tree->root != 0)
        left_to_visit[waiting++] = tree->root;
    for (uint32_t step = 0; waiting > 0; step++) {
        const ffm_interval *node = &nodes[left_to_visit[--waiting]];
        if (node->furthest <= start)
            continue;
        if (step == STEPS || waiting + 2 > DEPTH)
            return most + 1;
        if (node->start < end && start < node->end) {
            if (found == most)
                return most + 1;
            numbers[found++] = (uint32_t)(node - nodes);
        }
        if (node->left != 0)
            left_to_visit[waiting++] = node->left;
        if (node->right != 0 && node->start < end)
            left_to_visit[waiting++] = node->right;
    }
    return found;
}
