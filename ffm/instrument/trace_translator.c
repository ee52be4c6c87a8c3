/* Runs inside the measured program, compiled there by Frida (CModule). It makes Stalker translate the program's code so
 * that every instruction that accesses watched memory calls the collector first.
 *
 * It only translates; the effects of the instructions are the collector's business (native/watch/detection/trace.c).
 * trace_instructions.c and trace_code_checks.c are prepended to this text: they tell what an instruction accesses, and
 * see to it that no block outlives the code that it was made from. */

extern void ffm_collector_trace_access(GumCpuContext *registers, gpointer operand);
extern void ffm_collector_trace_lanes(GumCpuContext *registers, gpointer lanes);
extern void ffm_collector_trace_system_call(GumCpuContext *registers, gpointer nothing);
extern void ffm_collector_trace_counter(GumCpuContext *registers, gpointer nothing);
extern guint8 ffm_collector_trace_pages[FFM_TRACED_PAGES];
extern gboolean ffm_collector_trace_skips(guint64 instruction);
extern gboolean ffm_collector_trace_masks(const guint8 *code, gpointer lanes);
/* agent/trace.js */
extern void refuse_wide(guint64 instruction);
extern void refuse_unknown(guint64 instruction);

/* lea rcx, [base + index * scale + displacement] */
static void put_address(GumX86Writer *writer, const ffm_operand *operand, gint32 displacement)
{
    gboolean based = operand->base != FFM_NO_REGISTER, indexed = operand->index != FFM_NO_REGISTER;
    guint8 base = based ? operand->base : 5, index = indexed ? operand->index : 4;
    guint8 scale = operand->scale == 8 ? 3 : operand->scale == 4 ? 2 : operand->scale == 2 ? 1 : 0;
    guint8 code[8] = {0x48, 0x8d, 0x0c, 0x00, 0, 0, 0, 0};
    code[0] |= (indexed && index >= 8 ? 2 : 0) | (based && base >= 8 ? 1 : 0);
    code[2] |= based ? 0x80 : 0;
    code[3] = scale << 6 | (index & 7) << 3 | (base & 7);
    memcpy(code + 4, &displacement, sizeof displacement);
    gum_x86_writer_put_bytes(writer, code, sizeof code);
}

/* Jump to `hit` if the operand starts on a marked page, otherwise to `missed`; preserves all registers and flags. A
 * callout that saves all state costs about 100 ns, this a few. */
static void put_check(GumX86Writer *writer, const ffm_operand *operand, gconstpointer hit, gconstpointer missed)
{
    enum { RED_ZONE = 128, PUSHED = 8, RSP = 4 };
    /* lea rsp, [rsp - 128]; push rcx */
    static const guint8 enter[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0xff, 0xff, 0xff, 0x51};
    /* push rax; lahf; seto al; push rax */
    static const guint8 keep_flags[] = {0x50, 0x9f, 0x0f, 0x90, 0xc0, 0x50};
    /* shr rcx, 12; movzx ecx, cx; test byte ptr [rax + rcx], mask; pop rax */
    const guint8 mask = operand->flags & FFM_OPERAND_WRITE ? FFM_PAGE_USED | FFM_PAGE_WRITTEN : FFM_PAGE_USED;
    const guint8 compare[] = {0x48, 0xc1, 0xe9, 0x0c, 0x0f, 0xb7, 0xc9, 0xf6, 0x04, 0x08, mask, 0x58};
    /* add al, 127; sahf; pop rax; pop rcx; lea rsp, [rsp + 128] */
    static const guint8 leave[] = {0x04, 0x7f, 0x9e, 0x58, 0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0};
    gum_x86_writer_put_bytes(writer, enter, sizeof enter);
    if (operand->base == FFM_NO_REGISTER && operand->index == FFM_NO_REGISTER)
        gum_x86_writer_put_mov_reg_u64(writer, GUM_X86_RCX, (guint64)operand->displacement);
    else
        put_address(writer, operand, (gint32)operand->displacement + (operand->base == RSP ? RED_ZONE + PUSHED : 0));
    gum_x86_writer_put_bytes(writer, keep_flags, sizeof keep_flags);
    gum_x86_writer_put_mov_reg_u64(writer, GUM_X86_RAX, (guint64)ffm_collector_trace_pages);
    gum_x86_writer_put_bytes(writer, compare, sizeof compare);
    gum_x86_writer_put_jcc_near_label(writer, X86_INS_JNE, hit, GUM_NO_HINT);
    gum_x86_writer_put_bytes(writer, leave, sizeof leave);
    gum_x86_writer_put_jmp_near_label(writer, missed);
    gum_x86_writer_put_label(writer, hit);
    gum_x86_writer_put_bytes(writer, leave, sizeof leave);
}

static void put_callout(GumStalkerIterator *iterator, const ffm_operand *found, guint8 flags)
{
    ffm_operand *operand = g_malloc(sizeof *operand);
    memcpy(operand, found, sizeof *operand);
    operand->flags |= flags;
    gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_access, operand, g_free);
}

/* A callout does not see the direction flag, so there is one for either direction. */
static void put_either_direction(GumStalkerIterator *iterator, GumX86Writer *writer, const ffm_operand *found)
{
    /* lea rsp, [rsp - 128]; pushfq; test dword ptr [rsp], 0x400 */
    static const guint8 look[] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0xf7, 0x04, 0x24, 0x00, 0x04, 0x00, 0x00};
    /* popfq; lea rsp, [rsp + 128] */
    static const guint8 leave[] = {0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00};
    guint8 *labels = g_malloc(2); /* any distinct pointers; as few as there are string instructions */
    gum_x86_writer_put_bytes(writer, look, sizeof look);
    gum_x86_writer_put_jcc_near_label(writer, X86_INS_JNE, labels, GUM_NO_HINT);
    gum_x86_writer_put_bytes(writer, leave, sizeof leave);
    put_callout(iterator, found, 0);
    gum_x86_writer_put_jmp_near_label(writer, labels + 1);
    gum_x86_writer_put_label(writer, labels);
    gum_x86_writer_put_bytes(writer, leave, sizeof leave);
    put_callout(iterator, found, FFM_OPERAND_DOWN);
    gum_x86_writer_put_label(writer, labels + 1);
}

static void put_access(GumStalkerIterator *iterator, GumX86Writer *writer, const ffm_operand *found)
{
    if (found->flags & FFM_OPERAND_REPEATED) {
        put_either_direction(iterator, writer, found);
        return;
    }
    ffm_operand *operand = g_malloc(sizeof *operand);
    memcpy(operand, found, sizeof *operand);
    if (operand->flags & (FFM_OPERAND_FS | FFM_OPERAND_GS | FFM_OPERAND_NARROW)) {
        gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_access, operand, g_free);
        return;
    }
    gconstpointer hit = operand, missed = (guint8 *)operand + 1; /* labels are any two distinct pointers */
    put_check(writer, operand, hit, missed);
    gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_access, operand, g_free);
    gum_x86_writer_put_label(writer, missed);
}

/* vmovdqu [rsp + place], ymm */
static void put_vector(GumX86Writer *writer, guint8 vector, guint8 place)
{
    const guint8 code[] = {0xc5, vector < 8 ? 0xfe : 0x7e, 0x7f, 0x44 | (vector & 7) << 3, 0x24, place};
    gum_x86_writer_put_bytes(writer, code, sizeof code);
}

/* kmovq [rsp + place], k; or kmovw, which also CPUs without masks for bytes have */
static void put_mask(GumX86Writer *writer, guint8 number, guint8 lanes, guint8 place)
{
    enum { NARROW = 16 };
    const guint8 narrow[] = {0xc5, 0xf8}, wide[] = {0xc4, 0xe1, 0xf8};
    const guint8 rest[] = {0x91, 0x44 | number << 3, 0x24, place};
    if (lanes <= NARROW)
        gum_x86_writer_put_bytes(writer, narrow, sizeof narrow);
    else
        gum_x86_writer_put_bytes(writer, wide, sizeof wide);
    gum_x86_writer_put_bytes(writer, rest, sizeof rest);
}

static void put_lanes(GumStalkerIterator *iterator, GumX86Writer *writer, const ffm_lanes *found, guint8 index,
                      guint8 mask)
{
    /* lea rsp, [rsp - FFM_LANES_ROOM]; and back */
    static const guint8 enter[] = {0x48, 0x8d, 0xa4, 0x24, 0x40, 0xff, 0xff, 0xff};
    static const guint8 leave[] = {0x48, 0x8d, 0xa4, 0x24, 0xc0, 0x00, 0x00, 0x00};
    ffm_lanes *lanes = g_malloc(sizeof *lanes);
    memcpy(lanes, found, sizeof *lanes);
    gum_x86_writer_put_bytes(writer, enter, sizeof enter);
    if (index != NO_VECTOR)
        put_vector(writer, index, 0);
    if (mask != NO_VECTOR)
        put_vector(writer, mask, FFM_LANES_MASK);
    if (found->mask_bits != 0)
        put_mask(writer, found->mask_bits, found->count, FFM_LANES_MASK);
    gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_lanes, lanes, g_free);
    gum_x86_writer_put_bytes(writer, leave, sizeof leave);
}

/* An instruction of which each lane has an address of its own, or a mask says which lanes it accesses. */
static gboolean put_vectors(GumStalkerIterator *iterator, GumX86Writer *writer, const cs_insn *instruction,
                            guint8 place)
{
    enum { EVEX = 0x62 };
    const cs_x86 *detail = &instruction->detail->x86;
    const x86_reg by = detail->operands[place].mem.index;
    const gboolean spread =
        by != X86_REG_INVALID && number_of(by) == FFM_NO_REGISTER && by != X86_REG_RIZ && by != X86_REG_EIZ;
    guint8 element = 0, index_bytes = 0, index_width, mask_width;
    const gboolean known = has_lanes(instruction, &element, &index_bytes) && instruction->bytes[0] != EVEX;
    ffm_lanes lanes = {.element = operand_of(instruction, place), .index_bytes = index_bytes};
    if (!known && !spread)
        return FALSE;
    /* gather: destination, memory, mask; masked move: mask in the middle */
    const guint8 mask = vector_of(known ? detail->operands[spread ? 2 : 1].reg : X86_REG_INVALID, &mask_width);
    const guint8 index = vector_of(by, &index_width);
    if (known && mask != NO_VECTOR && (index != NO_VECTOR) == (index_bytes != 0))
        lanes.count =
            (mask_width > index_width ? mask_width : index_width) / (element > index_bytes ? element : index_bytes);
    lanes.element.bytes = element;
    put_lanes(iterator, writer, &lanes, index, mask);
    return TRUE;
}

/* An instruction with a register of masks. */
static gboolean put_masked(GumStalkerIterator *iterator, GumX86Writer *writer, const cs_insn *instruction, guint8 place)
{
    ffm_lanes lanes = {.element = operand_of(instruction, place)};
    if (!ffm_collector_trace_masks(instruction->bytes, &lanes))
        return FALSE;
    put_lanes(iterator, writer, &lanes, NO_VECTOR, NO_VECTOR);
    return TRUE;
}

static void put_operand(GumStalkerIterator *iterator, GumX86Writer *writer, const cs_insn *instruction, guint8 place)
{
    const ffm_operand operand = operand_of(instruction, place);
    if (!put_masked(iterator, writer, instruction, place) && !put_vectors(iterator, writer, instruction, place))
        put_access(iterator, writer, &operand);
}

static void put_string(GumStalkerIterator *iterator, GumX86Writer *writer, guint8 opcode, guint32 bytes,
                       gboolean repeated)
{
    enum { MOVS = 0xa4, CMPS = 0xa6, STOS = 0xaa, LODS = 0xac, SCAS = 0xae, RSI = 6, RDI = 7 };
    ffm_operand operand = {.index = FFM_NO_REGISTER, .scale = 1, .bytes = bytes};
    guint8 both = repeated ? FFM_OPERAND_REPEATED : 0;
    if (opcode == MOVS || opcode == CMPS || opcode == LODS) {
        operand.base = RSI;
        operand.flags = FFM_OPERAND_READ | both;
        put_access(iterator, writer, &operand);
    }
    if (opcode != LODS) {
        operand.base = RDI;
        operand.flags = (opcode == MOVS || opcode == STOS ? FFM_OPERAND_WRITE : FFM_OPERAND_READ) | both;
        put_access(iterator, writer, &operand);
    }
}

static void watch_instruction(GumStalkerIterator *iterator, GumX86Writer *writer, const cs_insn *instruction)
{
    const cs_x86 *detail = &instruction->detail->x86;
    guint8 opcode;
    gboolean repeated;
    guint32 element = string_instruction(instruction, &opcode, &repeated);
    if (element != 0) {
        put_string(iterator, writer, opcode, element, repeated);
        return;
    }
    if (instruction->id == X86_INS_SYSCALL) {
        gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_system_call, NULL, NULL);
        return;
    }
    if (instruction->id == X86_INS_RDTSC || instruction->id == X86_INS_RDTSCP)
        gum_stalker_iterator_put_callout(iterator, ffm_collector_trace_counter, NULL, NULL);
    if (touches_nothing(instruction))
        return;
    if (reaches_further(instruction)) {
        const ffm_lanes unknown = {.count = 0};
        put_lanes(iterator, writer, &unknown, NO_VECTOR, NO_VECTOR);
        return;
    }
    ffm_operand store;
    if (implied_store(instruction, &store))
        put_access(iterator, writer, &store);
    for (guint8 i = 0; i < detail->op_count; i++)
        if (detail->operands[i].type == X86_OP_MEM)
            put_operand(iterator, writer, instruction, i);
}

/* A GumStalkerTransformerCallback. Where Stalker does not know an instruction, the block ends before it, and the
 * translation would trap there. */
void translate(GumStalkerIterator *iterator, GumStalkerOutput *output, gpointer nothing)
{
    const cs_insn *instruction;
    guint64 behind = 0; /* the address after the block, if the block goes on there */
    gboolean found = FALSE;
    code_copy *made_from = NULL;
    while (gum_stalker_iterator_next(iterator, &instruction)) {
        const gboolean watched = !ffm_collector_trace_skips(instruction->address);
        if (loses_halves(instruction))
            refuse_wide(instruction->address);
        if (watched && !found)
            made_from = put_code_check(iterator, output->writer.x86, instruction->address);
        if (made_from != NULL)
            copy_instruction(made_from, instruction);
        if (watched)
            watch_instruction(iterator, output->writer.x86, instruction);
        behind = continues_elsewhere(instruction) ? 0 : instruction->address + instruction->size;
        found = TRUE;
        gum_stalker_iterator_keep(iterator);
    }
    if (!found || behind != 0)
        refuse_unknown(behind);
}
