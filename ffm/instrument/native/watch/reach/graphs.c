#include "graphs.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "new_pages.h"

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
    bool launched_by_gpu; /* any graph may be, as far as is known */
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

/* ---- facts ------------------------------------------------------------------------------------------------------- */

/* Locked. If there is no room for a graph's facts, nothing is known about it. */
static void forget(uint64_t executable)
{
    for (uint32_t i = graphs.count; i > 0; i--)
        if (graphs.table[i - 1].executable == executable)
            graphs.table[i - 1] = graphs.table[--graphs.count];
}

static void add(uint64_t executable, ffm_graph_kind kind, const ffm_box *box)
{
    pthread_mutex_lock(&graphs.lock);
    if (graphs.table == NULL)
        graphs.table = ffm_new_pages(FACTS * sizeof *graphs.table);
    if (graphs.table != NULL && graphs.count == FACTS)
        forget(executable);
    else if (graphs.table != NULL)
        graphs.table[graphs.count++] =
            (ffm_graph_fact){.executable = executable, .kind = kind, .box = box == NULL ? (ffm_box){0} : *box};
    pthread_mutex_unlock(&graphs.lock);
}

static void add_unknown(uint64_t executable)
{
    add(executable, FFM_GRAPH_UNKNOWN, NULL);
}

static void add_copy(uint64_t executable, const void *descriptor)
{
    const ffm_copy copy = ffm_copy_described(descriptor);
    if (copy.destination.host && copy.destination.address != 0)
        add(executable, FFM_GRAPH_WRITES, &copy.destination);
    if (copy.source.host && copy.source.address != 0)
        add(executable, FFM_GRAPH_READS, &copy.source);
}

static void add_set(uint64_t executable, const CUDA_MEMSET_NODE_PARAMS *set)
{
    const uint64_t row = set->width * set->elementSize;
    const uint64_t pitch = set->height > 1 ? set->pitch : row;
    const ffm_box box = {set->dst, row, pitch, set->height, set->height * pitch, 1, true};
    if (ffm_blocks_hold(set->dst))
        add(executable, FFM_GRAPH_WRITES, &box);
}

/* `handed` blocks are looked up again at each launch. */
static void add_kernel(uint64_t executable, uint64_t kernel, void **parameters, void **extra)
{
    ffm_kernel_reach reach = {0};
    ffm_block block;
    ffm_kernel_scan(&reach, kernel, parameters, extra);
    add(executable, FFM_GRAPH_KERNEL, NULL);
    if (reach.pageable)
        add(executable, FFM_GRAPH_PAGEABLE, NULL);
    if (reach.all) {
        add(executable, FFM_GRAPH_ALL, NULL);
        return;
    }
    while (ffm_kernel_next(&reach, &block)) {
        const ffm_box box = {block.start, block.bytes, block.bytes, 1, block.bytes, 1, true};
        add(executable, FFM_GRAPH_REACHES, &box);
    }
}

/* A kernel whose parameters are unknown, or not known yet. */
static void add_any_kernel(uint64_t executable)
{
    add(executable, FFM_GRAPH_KERNEL, NULL);
    add(executable, FFM_GRAPH_ALL, NULL);
    add(executable, FFM_GRAPH_PAGEABLE, NULL);
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

static void add_kernel_node(uint64_t executable, uint64_t node)
{
    if (updated_by_gpu(node)) {
        add_any_kernel(executable);
        return;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = {0};
    if (ask.kernel != NULL && ask.kernel(node, &parameters) == CUDA_SUCCESS)
        add_kernel(executable, kernel_of(&parameters), parameters.kernelParams, parameters.extra);
    else if (ask.kernel_before_12 != NULL && ask.kernel_before_12(node, &parameters) == CUDA_SUCCESS)
        add_kernel(executable, (uint64_t)parameters.func, parameters.kernelParams, parameters.extra);
    else
        add_unknown(executable);
}

static void add_graph(uint64_t executable, uint64_t graph, uint32_t depth);

static void add_node(uint64_t executable, uint64_t node, uint32_t depth)
{
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
        add_copy(executable, &copy);
        return;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (ask.set == NULL || ask.set(node, &set) != CUDA_SUCCESS)
            break;
        add_set(executable, &set);
        return;
    case CU_GRAPH_NODE_TYPE_KERNEL:
        add_kernel_node(executable, node);
        return;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (depth == DEEPEST || ask.child == NULL || ask.child(node, &child) != CUDA_SUCCESS)
            break;
        add_graph(executable, child, depth + 1);
        return;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        add(executable, FFM_GRAPH_RECORDS, NULL);
        return;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return;
    default: /* functions of the program, waits for memory, bodies of conditions, and newer kinds */
        break;
    }
    add_unknown(executable);
}

static void add_graph(uint64_t executable, uint64_t graph, uint32_t depth)
{
    size_t count = 0;
    if (ask.nodes == NULL || ask.nodes(graph, NULL, &count) != CUDA_SUCCESS) {
        add_unknown(executable);
        return;
    }
    if (count == 0)
        return;
    const size_t bytes = count * sizeof(uint64_t);
    uint64_t *nodes = ffm_new_pages(bytes);
    if (nodes == NULL) {
        add_unknown(executable);
        return;
    }
    if (ask.nodes(graph, nodes, &count) != CUDA_SUCCESS)
        add_unknown(executable);
    else
        for (size_t i = 0; i < count; i++)
            add_node(executable, nodes[i], depth);
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
    add(executable, FFM_GRAPH_KNOWN, NULL);
    add_graph(executable, graph, 0);
}

/* The newer form of the call names a CUkernel where there is no CUfunction; the older one fails then. */
static void change_kernel(uint64_t executable, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
    add_kernel(executable, kernel_of(kernel), kernel->kernelParams, kernel->extra);
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
    /* One node is changed; what it used before still counts. */
    case FFM_EFFECT_CHANGE_COPY:
        add_copy(executable, (const void *)description);
        break;
    case FFM_EFFECT_CHANGE_SET:
        add_set(executable, (const CUDA_MEMSET_NODE_PARAMS *)description);
        break;
    case FFM_EFFECT_CHANGE_KERNEL:
        change_kernel(executable, (const CUDA_KERNEL_NODE_PARAMS_v2 *)description);
        break;
    case FFM_EFFECT_CHANGE_CHILD:
        add_graph(executable, description, 0);
        break;
    case FFM_EFFECT_CHANGE_NODE:
        add_unknown(executable);
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
