/* Whether a block of the translation is still up to date: code at its start leaves the translation if not. Which code
 * changes how, and what begins a new translation, is in native/watch/detection/trace_code.c.
 *
 * Compiled with trace_translator.c, before it. */

extern guint64 ffm_collector_trace_replaced;
extern guint64 ffm_collector_trace_seen(void);
extern gboolean ffm_collector_trace_changes(guint64 address);
extern void ffm_collector_trace_anew(void);

/* What a block is made from, if its code may change at any time. The block itself reads the first three. */
typedef struct {
    const guint8 *end; /* of the code */
    gint64 negative;   /* number of its bytes */
    const guint8 *copy_end;
    guint8 *copy;
} code_copy;

enum { RAX = 0, RCX = 1, RSI = 6 };

/* mov register, value */
static void put_load(GumX86Writer *writer, guint8 number, guint64 value)
{
    const guint8 code[] = {0x48, 0xb8 | number};
    gum_x86_writer_put_bytes(writer, code, sizeof code);
    gum_x86_writer_put_bytes(writer, (const guint8 *)&value, sizeof value);
}

/* lea rsp, [rsp - 128]; and back */
static const guint8 below_red_zone[] = {0x48, 0x8d, 0x64, 0x24, 0x80};
static const guint8 back[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00};

/* Leave the translation for good: push the address below the program's red zone, and jump. */
static void put_leave(GumX86Writer *writer, guint64 address)
{
    static const guint8 push[] = {0x50};                       /* push rax */
    static const guint8 exchange[] = {0x48, 0x87, 0x04, 0x24}; /* xchg [rsp], rax */
    static const guint8 jump[] = {0xff, 0x25, 0, 0, 0, 0};     /* jmp [rip] */
    const guint64 target = (guint64)ffm_collector_trace_anew;
    gum_x86_writer_put_bytes(writer, below_red_zone, sizeof below_red_zone);
    gum_x86_writer_put_bytes(writer, push, sizeof push);
    put_load(writer, RAX, address);
    gum_x86_writer_put_bytes(writer, exchange, sizeof exchange);
    gum_x86_writer_put_bytes(writer, jump, sizeof jump);
    gum_x86_writer_put_bytes(writer, (const guint8 *)&target, sizeof target);
}

/* Code that only system calls replace: compare how often that happened, without a change of flags. */
static void put_count(GumX86Writer *writer, guint64 address)
{
    enum { WAY_OUT = 1 + 8 + 5 + 1 + 10 + 4 + 6 + 8 };
    static const guint8 push[] = {0x51};                                  /* push rcx */
    static const guint8 compare[] = {0x48, 0x8b, 0x09, 0x48, 0x8d, 0x89}; /* mov rcx, [rcx]; lea rcx, [rcx + seen] */
    static const guint8 skip[] = {0xe3, WAY_OUT};                         /* jrcxz */
    static const guint8 pop[] = {0x59};                                   /* pop rcx */
    const gint32 seen = -(gint32)ffm_collector_trace_seen();
    gum_x86_writer_put_bytes(writer, below_red_zone, sizeof below_red_zone);
    gum_x86_writer_put_bytes(writer, push, sizeof push);
    put_load(writer, RCX, (guint64)&ffm_collector_trace_replaced);
    gum_x86_writer_put_bytes(writer, compare, sizeof compare);
    gum_x86_writer_put_bytes(writer, (const guint8 *)&seen, sizeof seen);
    gum_x86_writer_put_bytes(writer, skip, sizeof skip);
    gum_x86_writer_put_bytes(writer, pop, sizeof pop);
    gum_x86_writer_put_bytes(writer, back, sizeof back);
    put_leave(writer, address);
    gum_x86_writer_put_bytes(writer, pop, sizeof pop);
    gum_x86_writer_put_bytes(writer, back, sizeof back);
}

/* All other code: compare it with the copy, single bytes first, until whole words are left. */
static void put_comparison(GumX86Writer *writer, const code_copy *made_from, guint64 address)
{
    /* push rcx; push rax; lahf; seto al; push rax; push rdx; push rsi */
    static const guint8 keep[] = {0x51, 0x50, 0x9f, 0x0f, 0x90, 0xc0, 0x50, 0x52, 0x56};
    static const guint8 compare[] = {
        0x48, 0x8b, 0x16,       /*    mov rdx, [rsi] */
        0x48, 0x8b, 0x4e, 8,    /*    mov rcx, [rsi + 8] */
        0x48, 0x8b, 0x76, 16,   /*    mov rsi, [rsi + 16] */
        0xf6, 0xc1, 7,          /* 1: test cl, 7 */
        0x74, 0x0d,             /*    je 2 */
        0x8a, 0x04, 0x0a,       /*    mov al, [rdx + rcx] */
        0x3a, 0x04, 0x0e,       /*    cmp al, [rsi + rcx] */
        0x75, 0x1a,             /*    jne 3 */
        0x48, 0xff, 0xc1,       /*    inc rcx */
        0xeb, 0xee,             /*    jmp 1 */
        0x48, 0x85, 0xc9,       /* 2: test rcx, rcx */
        0x74, 0x42,             /*    je behind the way out */
        0x48, 0x8b, 0x04, 0x0a, /*    mov rax, [rdx + rcx] */
        0x48, 0x3b, 0x04, 0x0e, /*    cmp rax, [rsi + rcx] */
        0x75, 0x06,             /*    jne 3 */
        0x48, 0x83, 0xc1, 8,    /*    add rcx, 8 */
        0xeb, 0xeb,             /*    jmp 2 */
    }; /*                            3: the way out */
    /* pop rsi; pop rdx; pop rax; add al, 127; sahf; pop rax; pop rcx */
    static const guint8 restore[] = {0x5e, 0x5a, 0x58, 0x04, 0x7f, 0x9e, 0x58, 0x59};
    gum_x86_writer_put_bytes(writer, below_red_zone, sizeof below_red_zone);
    gum_x86_writer_put_bytes(writer, keep, sizeof keep);
    put_load(writer, RSI, (guint64)made_from);
    gum_x86_writer_put_bytes(writer, compare, sizeof compare);
    gum_x86_writer_put_bytes(writer, restore, sizeof restore);
    gum_x86_writer_put_bytes(writer, back, sizeof back);
    put_leave(writer, address);
    gum_x86_writer_put_bytes(writer, restore, sizeof restore);
    gum_x86_writer_put_bytes(writer, back, sizeof back);
}

static void nothing_to_call(GumCpuContext *registers, gpointer nothing) {}

static void free_copy(gpointer data)
{
    code_copy *made_from = data;
    g_free(made_from->copy);
    g_free(made_from);
}

/* Before the first instruction of a block. Returns what `copy_instruction` wants, or NULL. Stalker may overwrite the
 * end of a block later, so all of the check is at its start. */
static code_copy *put_code_check(GumStalkerIterator *iterator, GumX86Writer *writer, guint64 address)
{
    if (!ffm_collector_trace_changes(address)) {
        put_count(writer, address);
        return NULL;
    }
    code_copy *made_from = g_malloc0(sizeof *made_from);
    /* This is never called: it makes Stalker free the copy with the block. */
    gum_x86_writer_put_jmp_near_label(writer, made_from);
    gum_stalker_iterator_put_callout(iterator, nothing_to_call, made_from, free_copy);
    gum_x86_writer_put_label(writer, made_from);
    put_comparison(writer, made_from, address);
    return made_from;
}

static void copy_instruction(code_copy *made_from, const cs_insn *instruction)
{
    const gsize before = -made_from->negative, bytes = before + instruction->size;
    made_from->copy = g_realloc(made_from->copy, bytes);
    memcpy(made_from->copy + before, instruction->bytes, instruction->size);
    made_from->negative = -(gint64)bytes;
    made_from->copy_end = made_from->copy + bytes;
    made_from->end = (const guint8 *)instruction->address + instruction->size;
}
