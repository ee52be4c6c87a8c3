#include "emulation.h"

#include <string.h>

#include "emulated_vectors.h"

enum { CARRY = 1, PARITY = 4, ADJUST = 16, ZERO = 64, SIGN = 128, OVERFLOW = 2048 };

/* At any address, but each in one access. */
typedef volatile uint16_t __attribute__((aligned(1), may_alias)) two_bytes_there;
typedef volatile uint32_t __attribute__((aligned(1), may_alias)) four_bytes_there;
typedef volatile uint64_t __attribute__((aligned(1), may_alias)) eight_bytes_there;

static uint64_t load(uint64_t address, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        return *(const volatile uint8_t *)address;
    case 2:
        return *(const two_bytes_there *)address;
    case 4:
        return *(const four_bytes_there *)address;
    default:
        return *(const eight_bytes_there *)address;
    }
}

static void store(uint64_t address, uint32_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(two_bytes_there *)address = (uint16_t)value;
        break;
    case 4:
        *(four_bytes_there *)address = (uint32_t)value;
        break;
    default:
        *(eight_bytes_there *)address = value;
        break;
    }
}

static uint64_t get(const ffm_decoded *instruction, const greg_t *general)
{
    if (instruction->is_constant)
        return instruction->constant;
    return (uint64_t)general[ffm_general_registers[instruction->number]] >> (instruction->high ? 8 : 0);
}

static void set(const ffm_decoded *instruction, greg_t *general, uint64_t value)
{
    uint64_t *target = (uint64_t *)&general[ffm_general_registers[instruction->number]];
    if (instruction->high)
        *target = (*target & ~0xFF00ULL) | (value & 0xFF) << 8;
    else if (instruction->width == 1)
        *target = (*target & ~0xFFULL) | (value & 0xFF);
    else if (instruction->width == 2)
        *target = (*target & ~0xFFFFULL) | (value & 0xFFFF);
    else
        *target = instruction->width == 4 ? (uint32_t)value : value;
}

static uint64_t extended(uint64_t value, uint32_t bytes)
{
    const uint32_t unused = 64 - 8 * bytes;
    return (uint64_t)((int64_t)(value << unused) >> unused);
}

/* The result of an operation on operands of `bytes` bytes, and the flags that it sets. */
static uint64_t compute(uint8_t code, uint64_t a, uint64_t b, uint32_t bytes, greg_t *flags)
{
    const uint32_t unused = 64 - 8 * bytes;
    const uint64_t top = 1ULL << (8 * bytes - 1);
    const bool adds = code == FFM_ARITHMETIC_ADD || code == FFM_ARITHMETIC_INCREMENT;
    const bool subtracts =
        code == FFM_ARITHMETIC_SUBTRACT || code == FFM_ARITHMETIC_COMPARE || code == FFM_ARITHMETIC_DECREMENT;
    a = a << unused >> unused;
    b = b << unused >> unused;
    uint64_t result = adds                                  ? a + b
                      : subtracts                           ? a - b
                      : code == FFM_ARITHMETIC_OR           ? (a | b)
                      : code == FFM_ARITHMETIC_EXCLUSIVE_OR ? (a ^ b)
                                                            : (a & b);
    result = result << unused >> unused;
    greg_t found = 0;
    if (adds)
        found |= (result < a ? CARRY : 0) | ((a ^ result) & (b ^ result) & top ? OVERFLOW : 0);
    if (subtracts)
        found |= (a < b ? CARRY : 0) | ((a ^ b) & (a ^ result) & top ? OVERFLOW : 0);
    if (adds || subtracts)
        found |= (a ^ b ^ result) & ADJUST;
    found |= (result == 0 ? ZERO : 0) | (result & top ? SIGN : 0);
    found |= __builtin_parity((uint8_t)result) ? 0 : PARITY;
    greg_t changed = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;
    if (code == FFM_ARITHMETIC_INCREMENT || code == FFM_ARITHMETIC_DECREMENT)
        changed &= ~(greg_t)CARRY;
    *flags = (*flags & ~changed) | (found & changed);
    return result;
}

/* At any address, which the compiler's own operations do not promise. */
#define SWAP(type, at, before, after)                                                                                  \
    ({                                                                                                                 \
        type there = (type)(before);                                                                                   \
        bool swapped;                                                                                                  \
        __asm__ volatile("lock cmpxchg %[wanted], %[memory]"                                                           \
                         : "=@ccz"(swapped), [memory] "+m"(*(at)), "+a"(there)                                         \
                         : [wanted] "r"((type)(after))                                                                 \
                         : "memory");                                                                                  \
        swapped;                                                                                                       \
    })

/* Store a value if the memory still holds another one; false if it does not. */
static bool swap(uint64_t address, uint32_t bytes, uint64_t before, uint64_t after)
{
    switch (bytes) {
    case 1:
        return SWAP(uint8_t, (volatile uint8_t *)address, before, after);
    case 2:
        return SWAP(uint16_t, (two_bytes_there *)address, before, after);
    case 4:
        return SWAP(uint32_t, (four_bytes_there *)address, before, after);
    default:
        return SWAP(uint64_t, (eight_bytes_there *)address, before, after);
    }
}

static uint64_t after(const ffm_decoded *instruction, const greg_t *general, uint64_t memory, greg_t *flags)
{
    const uint64_t other = get(instruction, general);
    switch (instruction->code) {
    case FFM_ARITHMETIC_EXCHANGE:
        return other;
    case FFM_ARITHMETIC_EXCHANGE_ADD:
        return compute(FFM_ARITHMETIC_ADD, memory, other, instruction->bytes, flags);
    case FFM_ARITHMETIC_COMPARE_EXCHANGE:
        compute(FFM_ARITHMETIC_COMPARE, (uint64_t)general[REG_RAX], memory, instruction->bytes, flags);
        return *flags & ZERO ? other : memory;
    default:
        return compute(instruction->code, memory, other, instruction->bytes, flags);
    }
}

static void change(const ffm_decoded *instruction, greg_t *general)
{
    uint64_t before, wanted;
    greg_t flags;
    do {
        before = load(instruction->address, instruction->bytes);
        flags = general[REG_EFL];
        wanted = after(instruction, general, before, &flags);
        if (!instruction->is_locked)
            store(instruction->address, instruction->bytes, wanted);
    } while (instruction->is_locked && !swap(instruction->address, instruction->bytes, before, wanted));
    general[REG_EFL] = flags;
    const ffm_decoded accumulator = {.width = instruction->bytes};
    if (instruction->code == FFM_ARITHMETIC_EXCHANGE || instruction->code == FFM_ARITHMETIC_EXCHANGE_ADD)
        set(instruction, general, before);
    else if (instruction->code == FFM_ARITHMETIC_COMPARE_EXCHANGE && !(flags & ZERO))
        set(&accumulator, general, before);
}

static void compute_here(const ffm_decoded *instruction, greg_t *general)
{
    if (!instruction->to_register && instruction->code != FFM_ARITHMETIC_COMPARE &&
        instruction->code != FFM_ARITHMETIC_TEST) {
        change(instruction, general);
        return;
    }
    const uint64_t memory = load(instruction->address, instruction->bytes), other = get(instruction, general);
    const bool reversed = instruction->to_register;
    const uint64_t result = compute(instruction->code, reversed ? other : memory, reversed ? memory : other,
                                    instruction->bytes, &general[REG_EFL]);
    if (instruction->code != FFM_ARITHMETIC_COMPARE && instruction->code != FFM_ARITHMETIC_TEST)
        set(instruction, general, result);
}

void ffm_emulation_execute(const ffm_decoded *instruction, ucontext_t *context)
{
    greg_t *general = context->uc_mcontext.gregs;
    uint64_t value;
    char *lanes = NULL;
    if (context->uc_mcontext.fpregs != NULL)
        lanes = (char *)&context->uc_mcontext.fpregs->_xmm[instruction->number & 15];
    switch (instruction->kind) {
    case FFM_OPERAND_LOAD:
        value = load(instruction->address, instruction->bytes);
        set(instruction, general, instruction->is_signed ? extended(value, instruction->bytes) : value);
        break;
    case FFM_OPERAND_STORE:
        store(instruction->address, instruction->bytes, get(instruction, general));
        break;
    case FFM_OPERAND_COMPUTE:
        compute_here(instruction, general);
        break;
    case FFM_OPERAND_VECTOR_COMPUTE:
        ffm_emulation_compute_vector(instruction, context);
        break;
    case FFM_OPERAND_VECTOR_LOAD:
        memset(lanes, 0, 16);
        if (instruction->bytes == 16) {
            memcpy(lanes, (const void *)instruction->address, 16);
        } else {
            value = load(instruction->address, instruction->bytes);
            memcpy(lanes, &value, sizeof value);
        }
        break;
    case FFM_OPERAND_VECTOR_STORE:
        if (instruction->bytes == 16) {
            memcpy((void *)instruction->address, lanes, 16);
        } else {
            memcpy(&value, lanes, sizeof value);
            store(instruction->address, instruction->bytes, value);
        }
        break;
    }
    general[REG_RIP] += instruction->length;
}
