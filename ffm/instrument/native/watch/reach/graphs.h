/* Graphs, and the host memory that a launch of one uses. The driver is queried for the nodes when a graph is
 * instantiated; if it cannot answer, the graph is unknown. */
#ifndef FFM_GRAPHS_H
#define FFM_GRAPHS_H

#include <stdbool.h>

#include "blocks.h"
#include "boxes.h"
#include "kernels.h"
#include "thread.h"

typedef enum {
    FFM_GRAPH_KNOWN,    /* its instantiation was seen */
    FFM_GRAPH_WRITES,   /* a copy or a memset writes the box */
    FFM_GRAPH_READS,    /* a copy reads the box */
    FFM_GRAPH_KERNEL,   /* it has kernels */
    FFM_GRAPH_REACHES,  /* a kernel's parameters contain the address of the block at the box's address */
    FFM_GRAPH_ALL,      /* a kernel may reach any block */
    FFM_GRAPH_PAGEABLE, /* a kernel may access ordinary memory of the program */
    FFM_GRAPH_UNKNOWN,  /* it may write any memory, functions of the program may run, and it may wait for the CPU */
    FFM_GRAPH_RECORDS   /* it records events */
} ffm_graph_kind;

/* One known fact about an executable graph. It is about the node `node`, which lies within the node `within` of the
 * whole graph or is the same; both are 0 if the fact is about the graph itself. */
typedef struct {
    uint64_t executable, node, within;
    ffm_graph_kind kind;
    ffm_box box;
} ffm_graph_fact;

/* Provide the driver's functions that are called; NULL for one that it lacks. In the order of
 * ffm_collector_ask_graphs. */
enum { FFM_GRAPH_QUESTIONS = 8 };
void ffm_graphs_ask(void *const questions[FFM_GRAPH_QUESTIONS]);

/* Whether the call launches a graph. */
static inline bool ffm_graphs_launched(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_LAUNCH_GRAPH;
}

/* After a call: note what graphs use. */
void ffm_graphs_note(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation);

/* The next fact about an executable graph, from `*place` on; false after the last. */
bool ffm_graph_next(uint64_t executable, uint32_t *place, ffm_graph_fact *fact);

/* Whether there is such a fact. An unknown graph has every fact except FFM_GRAPH_KNOWN. */
bool ffm_graph_has(uint64_t executable, ffm_graph_kind kind);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_graphs_after_fork(void);

#endif
