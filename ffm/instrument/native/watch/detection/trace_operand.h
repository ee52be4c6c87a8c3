/* Which memory an instruction reads or writes, as the trace's translator passes it to the collector. The C compiler and
 * Frida's both read it as it stands, so it may contain only plain declarations. */

/* Flags of an operand. */
enum {
    FFM_OPERAND_READ = 1,
    FFM_OPERAND_WRITE = 2,
    FFM_OPERAND_FS = 4, /* the address is relative to the thread's own memory */
    FFM_OPERAND_GS = 8,
    FFM_OPERAND_NARROW = 16,   /* an address of 32 bits */
    FFM_OPERAND_REPEATED = 32, /* a string instruction with a prefix: RCX elements */
    FFM_OPERAND_DOWN = 64      /* they lie towards lower addresses, because the direction flag is set */
};

enum { FFM_NO_REGISTER = 255 };

/* Marks of pages: an access that starts there may reach memory that is watched for all accesses, or for writes. */
enum { FFM_PAGE_USED = 1, FFM_PAGE_WRITTEN = 2, FFM_TRACED_PAGES = 65536 };

/* base + index * scale + displacement, with registers numbered as in their encoding: RAX, RCX, RDX, RBX, RSP, RBP, RSI,
 * RDI, R8 and so on. */
typedef struct {
    unsigned char base, index, scale, flags;
    unsigned int bytes;
    long long displacement;
} ffm_operand;

/* What a gather or a masked move accesses: element i if the highest bit of mask[i] is set. It lies index[i] * scale
 * bytes, or i elements, behind the operand's address. The translation puts both vectors on the stack, the index
 * first. */
typedef struct {
    ffm_operand element;
    unsigned char count;       /* of elements; 0 if it is not known which memory is accessed */
    unsigned char index_bytes; /* of an element of the index; 0 for none */
    unsigned char mask_bits;   /* of a mask register k1 to k7, whose bit i takes the place of mask[i]; 0 for a vector */
    unsigned char packed;      /* the elements that are accessed follow each other */
} ffm_lanes;

enum { FFM_LANES_MASK = 32, FFM_LANES_ROOM = 192 }; /* offset of the mask; room for both vectors and the red zone */
