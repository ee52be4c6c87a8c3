"""Logic, shifts and fields of bits (PTX ISA, 9.7.1 and 9.7.8), `prmt`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tests.vgpu.instructions.case import Case, width
from tests.vgpu.instructions.ptx_reference import of_type, signed


def bits_of(word: str) -> list[Case]:
    """Logic, shifts, counts and fields of `b16`, `b32` or `b64`."""
    size = width(word)
    mask = (1 << size) - 1

    def case(form: str, compute: Callable[..., int | None], *inputs: str, result: str = word) -> Case:
        return Case(form, inputs, result, compute)

    cases = [
        case(f"and.{word}", lambda a, b: a & b, word, word),
        case(f"or.{word}", lambda a, b: a | b, word, word),
        case(f"xor.{word}", lambda a, b: a ^ b, word, word),
        case(f"not.{word}", lambda a: ~a, word),
        case(f"cnot.{word}", lambda a: int(a == 0), word),
        case(f"shl.{word}", lambda a, n: a << min(n, size), word, "u32"),
        case(f"shr.u{size}", lambda a, n: a >> min(n, size), word, "u32"),
        case(f"shr.{word}", lambda a, n: a >> min(n, size), word, "u32"),
        case(f"shr.s{size}", lambda a, n: signed(a, size) >> min(n, size), word, "u32"),
    ]
    if size == 16:
        return cases
    cases += [
        case(f"popc.{word}", lambda a: a.bit_count(), word, result="u32"),
        case(f"clz.{word}", lambda a: size - a.bit_length(), word, result="u32"),
        case(f"brev.{word}", lambda a: int(f"{a:0{size}b}"[::-1], 2), word),
        case(f"bfi.{word}", lambda a, b, p: inserted(a, b, p & 255, p >> 8 & 255, mask), word, word, "u32"),
    ]
    cases[-1] = Case(
        f"bfi.{word}",
        (word, word, "u32"),
        word,
        lambda a, b, p: inserted(a, b, p & 255, p >> 8 & 255, mask),
        f"and.b32 %r1, %z, 255; shr.u32 %r2, %z, 8; and.b32 %r2, %r2, 255; bfi.{word} %o, %x, %y, %r1, %r2;",
    )
    for kind in (f"u{size}", f"s{size}"):
        cases += [
            case(f"bfe.{kind}", lambda a, p, n, kind=kind: extracted(kind, a, p & 255, n & 255), word, "u32", "u32"),
            case(f"bfind.{kind}", lambda a, kind=kind: highest(kind, a), word, result="u32"),
            case(f"bfind.shiftamt.{kind}", lambda a, kind=kind: distance(kind, a), word, result="u32"),
        ]
    return cases


def inserted(a: int, b: int, place: int, length: int, mask: int) -> int:
    """bfi: `length` bits of a, at a place in b."""
    ones = ((1 << length) - 1) << place & mask
    return (a << place & ones) | (b & ~ones)


def extracted(kind: str, a: int, place: int, length: int) -> int:
    """bfe: beyond the highest bit it goes on with the sign."""
    size = width(kind)
    if length == 0:
        return 0
    field = (signed(a, size) if kind[0] == "s" else a) >> place & ((1 << length) - 1)
    top = a >> min(place + length - 1, size - 1) & 1
    return field | (-1 << length if kind[0] == "s" and top else 0)


def highest(kind: str, a: int) -> int:
    """bfind: the place of the highest bit that differs from the sign; -1 for none."""
    if kind[0] == "s" and signed(a, width(kind)) < 0:
        a = ~a & ((1 << width(kind)) - 1)
    return a.bit_length() - 1


def distance(kind: str, a: int) -> int:
    found = highest(kind, a)
    return found if found < 0 else width(kind) - 1 - found


def permuted(mode: str, a: int, b: int, c: int) -> int:
    """prmt."""
    source = (b << 32 | a).to_bytes(8, "little")
    low = c & 3
    places = {
        "f4e": [low, low + 1, low + 2, low + 3],
        "b4e": [low, (low - 1) & 7, (low - 2) & 7, (low - 3) & 7],
        "rc8": [low] * 4,
        "ecl": [max(low, place) for place in range(4)],
        "ecr": [min(low, place) for place in range(4)],
        "rc16": [2 * (c & 1), 2 * (c & 1) + 1] * 2,
    }
    if mode:
        return int.from_bytes(bytes(source[place] for place in places[mode]), "little")
    codes = [c >> 4 * place & 15 for place in range(4)]
    picked = [source[code & 7] if code < 8 else 255 * (source[code & 7] >> 7) for code in codes]
    return int.from_bytes(bytes(picked), "little")


def looked_up(table: int, *words: int) -> int:
    """lop3: bit by bit, the table's bit at the place that the three bits name."""
    return sum(
        (table >> ((words[0] >> bit & 1) << 2 | (words[1] >> bit & 1) << 1 | words[2] >> bit & 1) & 1) << bit
        for bit in range(32)
    )


def words_of_32() -> list[Case]:
    """What exists for registers of 32 bits only."""
    cases = [
        Case("lop3.b32", ("b32",) * 3, "b32", lambda a, b, c, t=table: looked_up(t, a, b, c),
             f"lop3.b32 %o, %x, %y, %z, {table};")
        for table in (0x00, 0x01, 0x1E, 0x2D, 0x3C, 0x5A, 0x78, 0x80, 0x96, 0xB8, 0xCA, 0xE8, 0xF8, 0xFE, 0xFF)
    ]  # fmt: skip
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        form = f"prmt.b32{'.' + mode if mode else ''}"
        cases.append(Case(form, ("b32",) * 3, "b32", lambda a, b, c, mode=mode: permuted(mode, a, b, c)))
    for way, how in product("lr", ("wrap", "clamp")):

        def funnel(low: int, high: int, n: int, way: str = way, how: str = how) -> int:
            n = n & 31 if how == "wrap" else min(n, 32)
            pair = high << 32 | low
            return pair << n >> 32 if way == "l" else pair >> n

        cases.append(Case(f"shf.{way}.{how}.b32", ("b32", "b32", "u32"), "b32", funnel))
    return cases


def joined_lookups() -> list[Case]:
    """lop3 with a predicate that tells whether any bit of the result is set."""
    cases = []
    for join, table in product(("or", "and"), (0x00, 0x80, 0xE8)):

        def compute(a: int, b: int, c: int, join: str = join, table: int = table) -> int:
            result = looked_up(table, a, b, c)
            asked, found = bool(a & 1), result != 0
            return result ^ (asked or found if join == "or" else asked and found)

        code = (
            "{ .reg .pred %a; and.b32 %r7, %x, 1; setp.ne.u32 %q, %r7, 0; "
            f"lop3.{join}.b32 %o|%a, %x, %y, %z, {table}, %q;"
            "selp.u32 %r7, 1, 0, %a; xor.b32 %o, %o, %r7; }"
        )
        cases.append(Case(f"lop3.{join}.b32", ("b32",) * 3, "b32", compute, code))
    return cases


def of_predicates() -> list[Case]:
    """Logic of predicates."""
    code = "and.b32 %r6, %x, 1; setp.ne.u32 %p, %r6, 0; and.b32 %r7, %y, 1; setp.ne.u32 %q, %r7, 0;"
    compute: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, b: a & b & 1, "or": lambda a, b: (a | b) & 1, "xor": lambda a, b: (a ^ b) & 1,
        "not": lambda a, _b: ~a & 1,
    }  # fmt: skip
    return [
        Case(f"{name}.pred", ("b32", "b32"), "b32", expected,
             f"{code} {name}.pred %p, %p{'' if name == 'not' else ', %q'}; selp.u32 %o, 1, 0, %p;")
        for name, expected in compute.items()
    ]  # fmt: skip


def masks() -> list[Case]:
    """bmsk and szext: amounts above 32 count as 32, or modulo 32."""
    cases = []
    for how in ("clamp", "wrap"):

        def amount(n: int, how: str = how) -> int:
            return min(n, 32) if how == "clamp" else n & 31

        cases.append(Case(f"bmsk.{how}.b32", ("u32", "u32"), "u32",
                          lambda a, b, f=amount: (1 << f(b)) - 1 << f(a)))  # fmt: skip
        for kind in ("u32", "s32"):

            def extended(a: int, n: int, f: Callable[[int], int] = amount, kind: str = kind) -> int:
                n = f(n)
                return 0 if n == 0 else of_type(f"{kind[0]}{n}", a)

            cases.append(Case(f"szext.{how}.{kind}", ("b32", "u32"), "b32", extended))
    return cases
