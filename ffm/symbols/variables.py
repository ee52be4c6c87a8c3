"""A program's variables by location (DWARF 2 to 5): in registers, on the stack, as members of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.dwarf.callframe import FDE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import LocationEntry, LocationExpr, LocationParser

REGISTERS = (
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip
"""Names of DWARF's register numbers on x86-64 (System V ABI, figure 3.36)."""

SCOPES = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block", "DW_TAG_namespace")
ALIASES = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type")
POINTERS = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
POINTER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable and its location at some address: in a register, or at an offset from the frame's base (the canonical
    frame address).
    """

    name: str
    kind: Any
    """DIE of its type."""
    register: str | None
    frame_offset: int | None


@dataclass(frozen=True, slots=True)
class Function:
    """The part of a function around an address."""

    start: int
    variables: list[Variable]


class Variables:
    """The variables of a module, by link-time addresses."""

    def __init__(self, dwarf: Any) -> None:
        self._dwarf = dwarf
        self._lists = LocationParser(dwarf.location_lists())
        self._frames: list[Any] | None = None
        self._units: list[Any] | None = None
        self._scopes_of: dict[int, list[tuple[Any, list[tuple[int, int]]]]] = {}
        self._parsers: dict[Any, DWARFExprParser] = {}

    def function_at(self, address: int, line: int = 0) -> Function | None:
        """Return the function around an address with its variables at that place, innermost scopes first.

        `line` is that of the innermost inlined function there, or 0 if unknown. Variables declared after it are left
        out: their place on the stack may still belong to another variable.
        """
        if self._units is None:
            self._units = [unit.get_top_DIE() for unit in self._dwarf.iter_CUs()]
        for top in self._units:
            if _has_range(top) and self._start(top, address) is None:
                continue
            scopes = list(self._scopes(top, address))
            physical = [scope for scope in scopes if scope.tag == "DW_TAG_subprogram"]
            if not physical:
                continue
            start = self._start(physical[-1], address)
            found: list[Variable] = []
            reached = line
            for scope in reversed(scopes):
                found += self._declared(scope, address, reached)
                if scope.tag == "DW_TAG_inlined_subroutine":
                    reached = _number(scope, "DW_AT_call_line")
            return None if start is None else Function(start, found)
        return None

    def frame_base(self, address: int) -> tuple[str, int] | None:
        """Return (register, offset) whose sum is the canonical frame address at an address; None if the rule is more
        complex.
        """
        if self._frames is None:
            entries = self._dwarf.EH_CFI_entries() if self._dwarf.has_EH_CFI() else self._dwarf.CFI_entries()
            self._frames = [entry for entry in entries if isinstance(entry, FDE)]
        for entry in self._frames:
            first = entry["initial_location"]
            if not first <= address < first + entry["address_range"]:
                continue
            return _frame_rule(entry, address)
        return None

    def _scopes(self, die: Any, address: int) -> Iterator[Any]:
        """Yield the scopes around an address below a DIE, outermost first."""
        for scope, ranges in self._scopes_below(die):
            if scope.tag == "DW_TAG_namespace":
                yield from self._scopes(scope, address)
            elif _start_in(ranges, address) is not None:
                yield scope
                yield from self._scopes(scope, address)

    def _scopes_below(self, die: Any) -> list[tuple[Any, list[tuple[int, int]]]]:
        """Return the scopes that are children of a DIE, with their ranges."""
        if die.offset not in self._scopes_of:
            children = (child for child in die.iter_children() if child.tag in SCOPES)
            self._scopes_of[die.offset] = [(child, self._ranges(child)) for child in children]
        return self._scopes_of[die.offset]

    def _start(self, die: Any, address: int) -> int | None:
        """Return the start of the range of a DIE that contains an address, or None."""
        return _start_in(self._ranges(die), address)

    def _ranges(self, die: Any) -> list[tuple[int, int]]:
        """Return the ranges [first, last) of a DIE."""
        attributes = die.attributes
        if "DW_AT_high_pc" in attributes:
            low = attributes["DW_AT_low_pc"].value
            high = attributes["DW_AT_high_pc"]
            return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]
        if "DW_AT_ranges" not in attributes:
            return []
        base = die.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        offset = 0 if base is None else base.value
        ranges = []
        for entry in self._dwarf.range_lists().get_range_list_at_offset(attributes["DW_AT_ranges"].value, die.cu):
            if not hasattr(entry, "begin_offset"):
                offset = entry.base_address
                continue
            shift = 0 if getattr(entry, "is_absolute", False) else offset
            ranges.append((entry.begin_offset + shift, entry.end_offset + shift))
        return ranges

    def _declared(self, scope: Any, address: int, line: int) -> Iterator[Variable]:
        for die in scope.iter_children():
            if die.tag not in ("DW_TAG_variable", "DW_TAG_formal_parameter") or "DW_AT_location" not in die.attributes:
                continue
            if line and _number(_origin(die), "DW_AT_decl_line") > line:
                continue
            name, kind = _name(die), type_of(die)
            place = self._place(die, address)
            if name and not name.startswith("__") and kind is not None and place is not None:
                yield Variable(name, kind, *place)

    def _place(self, die: Any, address: int) -> tuple[str | None, int | None] | None:
        """Return (register, None) or (None, offset from the frame's base)."""
        expression = self._expression(die, address)
        if expression is None:
            return None
        structs = die.cu.structs
        if structs not in self._parsers:
            self._parsers[structs] = DWARFExprParser(structs)
        operations = self._parsers[structs].parse_expr(expression)
        if len(operations) != 1:
            return None
        name, arguments = operations[0].op_name, operations[0].args
        if name.startswith("DW_OP_reg") and name[9:].isdigit() and int(name[9:]) < len(REGISTERS):
            return REGISTERS[int(name[9:])], None
        return (None, arguments[0]) if name == "DW_OP_fbreg" else None

    def _expression(self, die: Any, address: int) -> Any:
        location = self._lists.parse_from_attribute(die.attributes["DW_AT_location"], die.cu["version"], die)
        if isinstance(location, LocationExpr):
            return location.loc_expr
        base = die.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        offset = 0 if base is None else base.value
        for entry in location:
            if not isinstance(entry, LocationEntry):
                offset = getattr(entry, "base_address", offset)
                continue
            first, last = entry.begin_offset, entry.end_offset
            if not entry.is_absolute:
                first, last = first + offset, last + offset
            if first <= address < last:
                return entry.loc_expr
        return None


def _frame_rule(entry: Any, address: int) -> tuple[str, int] | None:
    """Return the rule for the frame's base at an address, from the instructions of its table (DWARF 5, section 6.4.2).

    (The library's own decoder stops at GCC's DW_CFA_GNU_args_size.)
    """
    place = entry["initial_location"]
    rule: tuple[int, int] | None = None
    remembered: list[tuple[int, int] | None] = []
    for instruction in (*entry.cie.instructions, *entry.instructions):
        name, arguments = instruction.opcode.FQN.removeprefix("DW_CFA_"), instruction.args
        if name.startswith("advance_loc"):
            place += arguments[0] * entry.cie["code_alignment_factor"]
        elif name == "set_loc":
            place = arguments[0]
        if place > address:
            break
        if name == "def_cfa":
            rule = arguments[0], arguments[1]
        elif name == "def_cfa_register" and rule is not None:
            rule = arguments[0], rule[1]
        elif name == "def_cfa_offset" and rule is not None:
            rule = rule[0], arguments[0]
        elif name.startswith("def_cfa"):
            rule = None
        elif name == "remember_state":
            remembered.append(rule)
        elif name == "restore_state":
            rule = remembered.pop()
    return None if rule is None else (REGISTERS[rule[0]], rule[1])


def _start_in(ranges: list[tuple[int, int]], address: int) -> int | None:
    """Return the start of the range that contains an address, or None."""
    return next((first for first, last in ranges if first <= address < last), None)


def _has_range(die: Any) -> bool:
    return "DW_AT_ranges" in die.attributes or "DW_AT_high_pc" in die.attributes


def _origin(die: Any) -> Any:
    """Return the DIE of which this one is an instance."""
    for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if link in die.attributes:
            return _origin(die.get_DIE_from_attribute(link))
    return die


def _name(die: Any) -> str:
    attribute = _origin(die).attributes.get("DW_AT_name")
    return "" if attribute is None else attribute.value.decode(errors="replace")


def _number(die: Any, name: str) -> int:
    """Return a DIE's number, or 0."""
    attribute = die.attributes.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0


def type_of(die: Any) -> Any:
    """Return the DIE of a variable's or pointer's type without typedefs and qualifiers, or None."""
    origin = _origin(die)
    if "DW_AT_type" not in origin.attributes:
        return None
    kind = origin.get_DIE_from_attribute("DW_AT_type")
    return type_of(kind) if kind.tag in ALIASES else kind


def size_of(kind: Any) -> int:
    """Return a type's size in bytes; 0 if unknown."""
    if kind is None:
        return 0
    if "DW_AT_byte_size" in kind.attributes:
        return int(kind.attributes["DW_AT_byte_size"].value)
    if kind.tag == "DW_TAG_array_type":
        count = 1
        for bound in kind.iter_children():
            upper = bound.attributes.get("DW_AT_upper_bound")
            count *= 0 if upper is None or not isinstance(upper.value, int) else upper.value + 1
        return count * size_of(type_of(kind))
    return POINTER_BYTES if kind.tag in POINTERS else 0


def member_at(kind: Any, offset: int) -> str:
    """Return the path to the member at an offset in a type, such as `.slots[2].blurred`; empty for the whole.

    Members of the C++ library's own types, whose names start with `_`, are left out: the vector is named, not its
    parts.
    """
    if kind is None:
        return ""
    if kind.tag == "DW_TAG_array_type":
        element = type_of(kind)
        size = size_of(element)
        return f"[{offset // size}]{member_at(element, offset % size)}" if size else ""
    if kind.tag not in RECORDS:
        return ""
    for child in kind.iter_children():
        start = child.attributes.get("DW_AT_data_member_location")
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or start is None:
            continue
        part = type_of(child)
        if not isinstance(start.value, int) or not start.value <= offset < start.value + max(size_of(part), 1):
            continue
        inner = member_at(part, offset - start.value)
        name = _name(child)
        if child.tag == "DW_TAG_inheritance" or not name:
            return inner
        return "" if name.startswith("_") else f".{name}{inner}"
    return ""
