#include "graphs.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "new_pages.h"
#include "threads.h"

enum { FACTS = 1 << 16, DEEPEST = 32 };

typedef int (*nodes_question)(uint64_t, uint64_t *, size_t *);
typedef int (*type_question)(uint64_t, uint32_t *);
typedef int (*parameters_question)(uint64_t, void *);
typedef int (*attribute_question)(uint64_t, uint32_t, void *);

static struct {
    nodes_question nodes;
    type_question type;
    parameters_question copy, set, kernel, kernel_before_12, child;
    attribute_question kernel_attribute;
} ask;

static struct {
    pthread_mutex_t lock;
    ffm_graph_fact *table;
    uint32_t count;
    bool launched_by_gpu; /* as far as is known, any graph may be */
} graphs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_graphs_ask(void *const questions[FFM_GRAPH_QUESTIONS])
{
    ask.nodes = (nodes_question)(uintptr_t)questions[0];
    ask.type = (type_question)(uintptr_t)questions[1];
    ask.copy = (parameters_question)(uintptr_t)questions[2];
    ask.set = (parameters_question)(uintptr_t)questions[3];
    ask.kernel = (parameters_question)(uintptr_t)questions[4];
    ask.kernel_before_12 = (parameters_question)(uintptr_t)questions[5];
    ask.child = (parameters_question)(uintptr_t)questions[6];
    ask.kernel_attribute = (attribute_question)(uintptr_t)questions[7];
}

/* A node of an executable graph, and the node of the whole graph in which it is: itself, or a child graph. */
typedef struct {
    uint64_t executable, node, within;
} owner;

/* ---- facts ------------------------------------------------------------------------------------------------------- */

/* Locked. If there is no room for a graph's facts, nothing is known about it. */
static void forget(uint64_t executable)
{
    for (uint32_t i = graphs.count; i > 0; i--)
        if (graphs.table[i - 1].executable == executable)
            graphs.table[i - 1] = graphs.table[--graphs.count];
}

/* Locked. Forget the facts about a node and all that is in it. Returns within which node it is; 0 if there were
 * none. */
static uint64_t forget_node(uint64_t executable, uint64_t node)
{
    uint64_t within = 0;
    for (uint32_t i = graphs.count; i > 0; i--) {
        const ffm_graph_fact fact = graphs.table[i - 1];
        if (fact.executable != executable || (fact.node != node && fact.within != node))
            continue;
        within = fact.within;
        graphs.table[i - 1] = graphs.table[--graphs.count];
    }
    return within;
}

static void add(owner of, ffm_graph_kind kind, const ffm_box *box)
{
    pthread_mutex_lock(&graphs.lock);
    if (graphs.table == NULL)
        graphs.table = ffm_new_pages(FACTS * sizeof *graphs.table);
    if (graphs.table != NULL && graphs.count == FACTS)
        forget(of.executable);
    else if (graphs.table != NULL)
        graphs.table[graphs.count++] = (ffm_graph_fact){.executable = of.executable,
                                                        .node = of.node,
                                                        .within = of.within,
                                                        .kind = kind,
                                                        .box = box == NULL ? (ffm_box){0} : *box};
    pthread_mutex_unlock(&graphs.lock);
}

static void add_unknown(owner of)
{
    ffm_threads_lend_functions();
    add(of, FFM_GRAPH_UNKNOWN, NULL);
}

static void add_copy(owner of, const void *descriptor)
{
    const ffm_copy copy = ffm_copy_described(descriptor);
    if (copy.destination.host && copy.destination.address != 0)
        add(of, FFM_GRAPH_WRITES, &copy.destination);
    if (copy.source.host && copy.source.address != 0)
        add(of, FFM_GRAPH_READS, &copy.source);
}

static void add_set(owner of, const CUDA_MEMSET_NODE_PARAMS *set)
{
    const uint64_t row = set->width * set->elementSize;
    const uint64_t pitch = set->height > 1 ? set->pitch : row;
    const ffm_box box = {set->dst, row, pitch, set->height, set->height * pitch, 1, true};
    if (ffm_blocks_hold(set->dst))
        add(of, FFM_GRAPH_WRITES, &box);
}

/* `handed` blocks are looked up again at each launch. */
static void add_kernel(owner of, uint64_t kernel, void **parameters, void **extra)
{
    ffm_kernel_reach reach = {0};
    ffm_block block;
    ffm_kernel_scan(&reach, kernel, parameters, extra);
    add(of, FFM_GRAPH_KERNEL, NULL);
    if (reach.pageable)
        add(of, FFM_GRAPH_PAGEABLE, NULL);
    if (reach.all) {
        add(of, FFM_GRAPH_ALL, NULL);
        return;
    }
    while (ffm_kernel_next(&reach, &block)) {
        const ffm_box box = {block.start, block.bytes, block.bytes, 1, block.bytes, 1, true};
        add(of, FFM_GRAPH_REACHES, &box);
    }
}

/* A kernel whose parameters are unknown, or not known yet. */
static void add_any_kernel(owner of)
{
    add(of, FFM_GRAPH_KERNEL, NULL);
    add(of, FFM_GRAPH_ALL, NULL);
    add(of, FFM_GRAPH_PAGEABLE, NULL);
}

/* Whether kernels may change the node's parameters on the device (CUDA 12.4). */
static bool updated_by_gpu(uint64_t node)
{
    CUlaunchAttributeValue value = {0};
    return ask.kernel_attribute != NULL &&
           ask.kernel_attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) == CUDA_SUCCESS &&
           value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

static uint64_t kernel_of(const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    return parameters->func != NULL ? (uint64_t)parameters->func : (uint64_t)parameters->kern;
}

static void add_kernel_node(owner of)
{
    const uint64_t node = of.node;
    if (updated_by_gpu(node)) {
        add_any_kernel(of);
        return;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = {0};
    if (ask.kernel != NULL && ask.kernel(node, &parameters) == CUDA_SUCCESS)
        add_kernel(of, kernel_of(&parameters), parameters.kernelParams, parameters.extra);
    else if (ask.kernel_before_12 != NULL && ask.kernel_before_12(node, &parameters) == CUDA_SUCCESS)
        add_kernel(of, (uint64_t)parameters.func, parameters.kernelParams, parameters.extra);
    else
        add_unknown(of);
}

static void add_graph(owner of, uint64_t graph, uint32_t depth);

static void add_node(owner of, uint32_t depth)
{
    const uint64_t node = of.node;
    uint32_t type = UINT32_MAX;
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS set;
    uint64_t child;
    if (ask.type != NULL && ask.type(node, &type) != CUDA_SUCCESS)
        type = UINT32_MAX;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (ask.copy == NULL || ask.copy(node, &copy) != CUDA_SUCCESS)
            break;
        add_copy(of, &copy);
        return;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (ask.set == NULL || ask.set(node, &set) != CUDA_SUCCESS)
            break;
        add_set(of, &set);
        return;
    case CU_GRAPH_NODE_TYPE_KERNEL:
        add_kernel_node(of);
        return;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (depth == DEEPEST || ask.child == NULL || ask.child(node, &child) != CUDA_SUCCESS)
            break;
        add_graph(of, child, depth + 1);
        return;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        add(of, FFM_GRAPH_RECORDS, NULL);
        return;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return;
    default: /* functions of the program, waits for memory, bodies of conditions, and newer kinds */
        break;
    }
    add_unknown(of);
}

static void add_graph(owner of, uint64_t graph, uint32_t depth)
{
    size_t count = 0;
    if (ask.nodes == NULL || ask.nodes(graph, NULL, &count) != CUDA_SUCCESS) {
        add_unknown(of);
        return;
    }
    if (count == 0)
        return;
    const size_t bytes = count * sizeof(uint64_t);
    uint64_t *nodes = ffm_new_pages(bytes);
    if (nodes == NULL) {
        add_unknown(of);
        return;
    }
    if (ask.nodes(graph, nodes, &count) != CUDA_SUCCESS)
        add_unknown(of);
    else
        for (size_t i = 0; i < count; i++)
            add_node((owner){of.executable, nodes[i], depth == 0 ? nodes[i] : of.within}, depth);
    munmap(nodes, bytes);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void end(uint64_t executable)
{
    pthread_mutex_lock(&graphs.lock);
    if (graphs.table != NULL)
        forget(executable);
    pthread_mutex_unlock(&graphs.lock);
}

static void begin(uint64_t executable, uint64_t graph)
{
    end(executable); /* the handle of an earlier one */
    const owner whole = {executable, 0, 0};
    add(whole, FFM_GRAPH_KNOWN, NULL);
    add_graph(whole, graph, 0);
}

/* One node becomes another one. Of child graphs in child graphs it is not known which node is in which. */
static void change(const ffm_function *function, uint64_t executable, uint64_t node, const void *description)
{
    pthread_mutex_lock(&graphs.lock);
    const uint64_t within = graphs.table == NULL ? 0 : forget_node(executable, node);
    pthread_mutex_unlock(&graphs.lock);
    const owner of = {executable, node, within == 0 ? node : within};
    if (function->effect == FFM_EFFECT_CHANGE_COPY) {
        add_copy(of, description);
    } else if (function->effect == FFM_EFFECT_CHANGE_SET) {
        add_set(of, description);
    } else if (function->effect == FFM_EFFECT_CHANGE_KERNEL && !updated_by_gpu(node)) {
        /* The newer form of the call names a CUkernel where there is no CUfunction; the older one fails then. */
        const CUDA_KERNEL_NODE_PARAMS_v2 *kernel = description;
        add_kernel(of, kernel_of(kernel), kernel->kernelParams, kernel->extra);
    } else if (function->effect == FFM_EFFECT_CHANGE_KERNEL) {
        add_any_kernel(of);
    } else if (function->effect == FFM_EFFECT_CHANGE_CHILD && within == node) {
        add_graph(of, (uint64_t)description, 1);
    } else {
        add_unknown(of);
    }
}

/* Whether kernels may launch the graph that a call has instantiated (CUDA 12.0). */
static bool launched_by_gpu(const ffm_function *function, const uint64_t *arguments)
{
    uint64_t flags = 0;
    if (function->flags >= 0)
        flags = arguments[function->flags];
    else if (function->description >= 0)
        flags = ((const CUDA_GRAPH_INSTANTIATE_PARAMS *)arguments[function->description])->flags;
    return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
}

void ffm_graphs_note(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation)
{
    if (function->kind != FFM_KIND_GRAPH || operation->result != 0)
        return;
    const uint64_t executable = operation->handle;
    const uint64_t description = function->description < 0 ? 0 : arguments[function->description];
    switch (function->effect) {
    case FFM_EFFECT_MAKE_GRAPH:
        if (launched_by_gpu(function, arguments))
            __atomic_store_n(&graphs.launched_by_gpu, true, __ATOMIC_RELAXED);
        begin(operation->destination, operation->handle);
        break;
    case FFM_EFFECT_UPDATE_GRAPH:
        begin(executable, description);
        break;
    case FFM_EFFECT_END_GRAPH:
        end(executable);
        break;
    case FFM_EFFECT_CHANGE_COPY:
    case FFM_EFFECT_CHANGE_SET:
    case FFM_EFFECT_CHANGE_KERNEL:
    case FFM_EFFECT_CHANGE_CHILD:
    case FFM_EFFECT_CHANGE_NODE:
        change(function, executable, arguments[function->node], (const void *)description);
        break;
    default:
        break;
    }
}

bool ffm_graph_next(uint64_t executable, uint32_t *place, ffm_graph_fact *fact)
{
    bool found = false;
    pthread_mutex_lock(&graphs.lock);
    for (; *place < graphs.count && !found; ++*place) {
        found = graphs.table[*place].executable == executable;
        if (found)
            *fact = graphs.table[*place];
    }
    pthread_mutex_unlock(&graphs.lock);
    return found;
}

bool ffm_graph_has(uint64_t executable, ffm_graph_kind kind)
{
    ffm_graph_fact fact;
    bool known = false, found = false;
    if (kind != FFM_GRAPH_KNOWN && __atomic_load_n(&graphs.launched_by_gpu, __ATOMIC_RELAXED))
        return true;
    for (uint32_t place = 0; ffm_graph_next(executable, &place, &fact);) {
        known = known || fact.kind == FFM_GRAPH_KNOWN;
        found = found || fact.kind == kind;
    }
    return found || (!known && kind != FFM_GRAPH_KNOWN);
}

void ffm_graphs_after_fork(void)
{
    pthread_mutex_init(&graphs.lock, NULL);
}
