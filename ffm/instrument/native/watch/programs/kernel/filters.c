#include "filters.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "guarded.h"

enum { WORD = sizeof(uint32_t) };

/* The machine that executes a filter. */
typedef struct {
    uint32_t accumulator, index, memory[BPF_MEMWORDS];
    struct seccomp_data data;
} machine;

static uint32_t computed(uint16_t operation, uint32_t first, uint32_t second)
{
    switch (operation) {
    case BPF_ADD:
        return first + second;
    case BPF_SUB:
        return first - second;
    case BPF_MUL:
        return first * second;
    case BPF_DIV:
        return second == 0 ? 0 : first / second;
    case BPF_AND:
        return first & second;
    case BPF_OR:
        return first | second;
    case BPF_XOR:
        return first ^ second;
    case BPF_LSH:
        return second < 32 ? first << second : 0;
    case BPF_RSH:
        return second < 32 ? first >> second : 0;
    default: /* BPF_NEG */
        return -first;
    }
}

static bool holds(uint16_t condition, uint32_t first, uint32_t second)
{
    switch (condition) {
    case BPF_JEQ:
        return first == second;
    case BPF_JGT:
        return first > second;
    case BPF_JGE:
        return first >= second;
    default: /* BPF_JSET */
        return (first & second) != 0;
    }
}

/* What an instruction of BPF_LD or BPF_LDX loads. */
static uint32_t loaded(const machine *state, const struct sock_filter *step)
{
    uint32_t word = 0;
    switch (BPF_MODE(step->code)) {
    case BPF_ABS:
        if (step->k <= sizeof state->data - WORD)
            memcpy(&word, (const char *)&state->data + step->k, WORD);
        return word;
    case BPF_MEM:
        return state->memory[step->k % BPF_MEMWORDS];
    case BPF_LEN:
        return sizeof state->data;
    default: /* BPF_IMM */
        return step->k;
    }
}

/* How far away the next instruction is, perhaps beyond the end: the kernel checks a filter only afterwards. */
static uint64_t execute(machine *state, const struct sock_filter *step)
{
    const uint32_t operand = BPF_SRC(step->code) == BPF_X ? state->index : step->k;
    switch (BPF_CLASS(step->code)) {
    case BPF_LD:
        state->accumulator = loaded(state, step);
        break;
    case BPF_LDX:
        state->index = loaded(state, step);
        break;
    case BPF_ST:
        state->memory[step->k % BPF_MEMWORDS] = state->accumulator;
        break;
    case BPF_STX:
        state->memory[step->k % BPF_MEMWORDS] = state->index;
        break;
    case BPF_ALU:
        state->accumulator = computed(BPF_OP(step->code), state->accumulator, operand);
        break;
    case BPF_JMP:
        if (BPF_OP(step->code) == BPF_JA)
            return 1 + (uint64_t)step->k;
        return 1 + (holds(BPF_OP(step->code), state->accumulator, operand) ? step->jt : step->jf);
    default: /* BPF_MISC */
        if (BPF_MISCOP(step->code) == BPF_TAX)
            state->index = state->accumulator;
        else
            state->accumulator = state->index;
        break;
    }
    return 1;
}

bool ffm_filter_allows(uint64_t filter, uint64_t number, const uint64_t *arguments)
{
    struct sock_fprog given;
    struct sock_filter step;
    machine state = {.data = {.nr = (int)number, .arch = AUDIT_ARCH_X86_64}};
    memcpy(state.data.args, arguments, sizeof state.data.args);
    if (!ffm_guarded_read(&given, filter, sizeof given))
        return true;
    for (uint64_t at = 0; at < given.len && ffm_guarded_read(&step, (uint64_t)&given.filter[at], sizeof step);
         at += execute(&state, &step)) {
        if (BPF_CLASS(step.code) != BPF_RET)
            continue;
        const uint32_t answer = (BPF_RVAL(step.code) == BPF_A ? state.accumulator : step.k) & SECCOMP_RET_ACTION_FULL;
        return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG;
    }
    return true;
}
