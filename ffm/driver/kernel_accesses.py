"""Through which of its parameters a kernel reads and writes memory, from its PTX.

Values are followed from the parameters through arithmetic to the addresses that instructions use. An address is a
*sum*: the parameter words that were added, and those that were subtracted. Only a launch shows which words are
addresses: a sum in which one more of them is added than subtracted points into the memory of these words. Everything
else, such as an address that was loaded from memory, is not followed, and the kernel counts as unknown.

The order of instructions is ignored: a register stands for every value that is ever put into it. See NVIDIA's "Parallel
Thread Execution ISA" for the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import product

from ffm.driver.kernel_text import UnknownTypeError, kernels_of, without_comments
from ffm.errors import FfmError

Sum = tuple[frozenset[int], frozenset[int]]
"""The words of parameters that were added and subtracted, each by its offset from the first parameter, in bytes."""

_OWN = -1
"""A word that stands for the address of memory that no other kernel has: variables in local and shared memory, and
constants.
"""

VARIABLES = -2
"""Likewise for the address of variables in the device's memory."""

_NOTHING: Sum = (frozenset(), frozenset())
_Value = frozenset[Sum]
_PLAIN: _Value = frozenset([_NOTHING])
_MOST_SUMS = 32
"""What one register can be, before the kernel counts as unknown."""

_WORD = 8
_WIDE = {"u64", "s64", "b64"}

_OWN_VARIABLE = re.compile(r"\.(?:shared|local|const)\s+(?:\.\w+\s+(?:\d+\s+)?)*([\w$%]+)")
_VARIABLE = re.compile(_OWN_VARIABLE.pattern.replace("shared|local|const", "global"))
_REGISTERS = re.compile(r"\.reg\s+(?:\.\w+\s+)+([^;]+);")
_STATEMENT = re.compile(
    r"(?:@!?[%\w$]+\s+)?(?P<operation>[a-z]\w*)(?P<modifiers>(?:(?:\.|::)\w+)*)\s*(?P<operands>.*)", re.DOTALL
)
_LABEL = re.compile(r"^\s*(?:[{}]\s*|[\w$]+:\s*)+")
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+)\s*)?\]")

_ONE_TAKEN_OVER = {"mov", "cvta", "cvt", "shfl"}
_TAKEN_OVER = _ONE_TAKEN_OVER | {"min", "max", "selp", "slct"}
_ADDED = {"add", "or", "and"}
_WITHOUT_RESULT = {
    "bra", "ret", "exit", "bar", "barrier", "membar", "fence", "nanosleep", "trap", "brkpt", "griddepcontrol",
    "prefetch", "prefetchu",
}  # fmt: skip
_DECLARATIONS = (".reg", ".local", ".shared", ".pragma")


class _UnknownError(FfmError):
    """The kernel does something that is not followed."""

    def __init__(self) -> None:
        super().__init__("The kernel does something that is not followed.")


@dataclass(frozen=True, slots=True)
class Accesses:
    """What the addresses are that a kernel reads from and writes to."""

    reads: frozenset[Sum]
    writes: frozenset[Sum]

    def among(self, given: Collection[int]) -> tuple[set[int], set[int]] | None:
        """Return the words of its parameters through which a launch uses memory, and those through which it writes.

        `given` are the words that are addresses of memory in this launch. None if it may use other memory. What it uses
        can include `VARIABLES`.
        """
        addresses = frozenset(given) | {_OWN, VARIABLES}
        used, written = set[int](), set[int]()
        for sums, words in ((self.reads, used), (self.writes, written)):
            for added, subtracted in sums:
                if len(added & addresses) - len(subtracted & addresses) != 1:
                    return None
                words |= (added | subtracted) & addresses
        return None if VARIABLES in written else ((used | written) - {_OWN}, written - {_OWN})


def kernel_accesses(ptx: str, name: str) -> Accesses | None:
    """Return what a kernel of a source reads and writes; None if that is not known, or it is not there."""
    text = without_comments(ptx)
    kernel = next(kernels_of(text, {name}), None)
    if kernel is None:
        return None
    own = {*_OWN_VARIABLE.findall(text[: kernel.begin]), *_OWN_VARIABLE.findall(kernel.body)}
    symbols = {**dict.fromkeys(_VARIABLE.findall(text), VARIABLES), **dict.fromkeys(own, _OWN)}
    try:
        offsets = {one.name: one.offset for one in kernel.parameters()}
        return _Kernel(offsets, symbols, _registers(kernel.body)).followed(kernel.body)
    except (_UnknownError, UnknownTypeError):
        return None


def _registers(body: str) -> tuple[str, ...]:
    """Return what the names of all registers begin with."""
    return tuple(
        one.split("<")[0].strip() for declared in _REGISTERS.findall(body) for one in declared.split(",") if one.strip()
    )


def _operands(text: str) -> list[str]:
    """Return the operands of an instruction; lists and addresses among them contain commas themselves."""
    return [one.strip() for one in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text) if one.strip()]


def _names(operand: str) -> list[str]:
    """Return the registers or symbols of an operand: of a list, all; `a|b` are two results."""
    return [one.strip() for one in operand.strip("{}").replace("|", ",").split(",") if one.strip()]


@dataclass(slots=True)
class _Kernel:
    offsets: dict[str, int]
    symbols: dict[str, int]
    registers: tuple[str, ...]
    values: dict[str, _Value] = field(default_factory=dict)
    kept: _Value = frozenset()
    """What local and shared memory contain."""
    reads: set[Sum] = field(default_factory=set)
    writes: set[Sum] = field(default_factory=set)
    changed: bool = False

    def followed(self, body: str) -> Accesses:
        """Take all instructions together until nothing new comes out.

        Raises:
            _UnknownError: There is something that is not followed.
        """
        statements = list(_statements(body))
        self.changed = True
        while self.changed:
            self.changed = False
            for operation, modifiers, operands in statements:
                self._take(operation, modifiers, operands)
        return Accesses(frozenset(self.reads), frozenset(self.writes))

    def _take(self, operation: str, modifiers: list[str], operands: list[str]) -> None:
        if operation in ("ld", "ldu"):
            self._load(modifiers, operands)
        elif operation in ("st", "red", "atom"):
            self._store(operation, modifiers, operands)
        elif any("[" in operand for operand in operands):
            self._copy(operation, modifiers, operands)
        elif operation in ("call", "brx", "alloca", "stackrestore"):
            raise _UnknownError
        elif operation not in _WITHOUT_RESULT and operands:
            self._put(operands[0], self._computed(operation, operands[1:]))

    def _put(self, result: str, value: _Value) -> None:
        for name in _names(result):
            before = self.values.get(name, frozenset())
            after = before | value
            if len(after) > _MOST_SUMS:
                raise _UnknownError
            if after != before:
                self.values[name] = after
                self.changed = True

    def _keep(self, value: _Value) -> None:
        if not value <= self.kept:
            self.kept |= value
            self.changed = True
            if len(self.kept) > _MOST_SUMS:
                raise _UnknownError

    def _value(self, operand: str) -> _Value:
        values = [self._value_of_name(name) for name in _names(operand)]
        return frozenset().union(*values)

    def _value_of_name(self, name: str) -> _Value:
        if name in self.values:
            return self.values[name]
        if name.startswith(self.registers):
            return frozenset()  # of an instruction that comes later
        if name.startswith("%"):
            return _PLAIN  # such as %tid.x
        if name in self.symbols and name not in self.offsets:
            return frozenset([(frozenset([self.symbols[name]]), frozenset())])
        if re.match(r"-?\d|0[fFdDxX]|_$", name):
            return _PLAIN
        raise _UnknownError  # such as a function, or the address of a parameter

    def _computed(self, operation: str, operands: list[str]) -> _Value:
        if operation in _TAKEN_OVER:
            taken = (
                operands
                if operation in ("min", "max")
                else operands[:1]
                if operation in _ONE_TAKEN_OVER
                else operands[:2]
            )
            return frozenset().union(*(self._value(one) for one in taken))
        if operation == "setp":
            return _PLAIN
        values = [self._value(one) for one in operands]
        if operation in _ADDED and len(values) == 2:
            return _summed(values[0], values[1])
        if operation == "sub" and len(values) == 2:
            return _summed(values[0], frozenset((less, more) for more, less in values[1]))
        if operation == "mad" and len(values) == 3:
            return _summed(_mixed(values[:2]), values[2])
        return _mixed(values)

    def _words(self, operand: str) -> set[int]:
        """Return all words that are in a value in some way."""
        return {word for added, subtracted in self._value(operand) for word in added | subtracted}

    def _address(self, operand: str) -> _Value:
        found = _ADDRESS.fullmatch(operand)
        if found is None:
            raise _UnknownError
        return self._value(found[1])

    def _space(self, modifiers: list[str]) -> str:
        return next((one for one in modifiers if one in ("param", "global", "shared", "local", "const")), "generic")

    def _load(self, modifiers: list[str], operands: list[str]) -> None:
        result, address = operands[0], operands[1]
        space = self._space(modifiers)
        if space == "param":
            self._load_parameter(modifiers[-1], result, address)
        elif space in ("shared", "local"):
            self._put(result, self.kept)
        elif space == "const":
            self._put(result, _PLAIN)
        else:
            self._use(self.reads, self._address(address))
            self._put(result, _PLAIN | self.kept if space == "generic" else _PLAIN)

    def _load_parameter(self, kind: str, result: str, address: str) -> None:
        found = _ADDRESS.fullmatch(address)
        if found is None or found[1] not in self.offsets:
            raise _UnknownError
        if kind not in _WIDE:
            self._put(result, _PLAIN)
            return
        place = self.offsets[found[1]] + int(found[2] or 0)
        for number, name in enumerate(_names(result)):
            word = place + number * _WORD
            self._put(name, frozenset([(frozenset([word]), frozenset())]))

    def _store(self, operation: str, modifiers: list[str], operands: list[str]) -> None:
        atomic = operation == "atom"
        address, stored = (operands[1], operands[2:]) if atomic else (operands[0], operands[1:])
        space = self._space(modifiers)
        if space in ("param", "const") or any(VARIABLES in self._words(one) for one in stored):
            raise _UnknownError
        if space in ("shared", "local", "generic"):
            for one in stored:
                self._keep(self._value(one))
        if space in ("global", "generic"):
            self._use(self.writes, self._address(address))
        if atomic:
            self._put(operands[0], _PLAIN if space == "global" else self.kept)

    def _copy(self, operation: str, modifiers: list[str], operands: list[str]) -> None:
        """Take an instruction that moves more than a register has."""
        if operation in ("prefetch", "prefetchu"):
            return
        if operation == "ldmatrix":
            self._put(operands[0], self.kept)
        elif operation == "stmatrix":
            self._keep(self._value(operands[1]))
        elif operation == "cp" and modifiers[:2] in (["async", "ca"], ["async", "cg"]):
            self._keep(_PLAIN)
            self._use(self.reads, self._address(operands[1]))
        elif operation == "wmma" and modifiers[0] == "load":
            self._use(self.reads, self._address(operands[1]))
            self._put(operands[0], _PLAIN | self.kept)
        elif operation == "wmma" and modifiers[0] == "store":
            self._keep(self._value(operands[1]))
            self._use(self.writes, self._address(operands[0]))
        else:
            raise _UnknownError

    def _use(self, sums: set[Sum], address: _Value) -> None:
        if not address <= sums:
            sums |= address
            self.changed = True


def _summed(one: _Value, other: _Value) -> _Value:
    found = frozenset((a[0] | b[0], a[1] | b[1]) for a, b in product(one, other))
    if len(found) > _MOST_SUMS:
        raise _UnknownError
    return found


def _mixed(values: list[_Value]) -> _Value:
    """Return the sum of values that some operation has mixed, so that the result is no address."""
    words = frozenset(word for value in values for added, subtracted in value for word in added | subtracted)
    return frozenset([(words, words)])


def _statements(body: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the instructions: operation, modifiers, operands."""
    for part in body.split(";"):
        text = _LABEL.sub("", part).strip()
        if not text or text.startswith(_DECLARATIONS):
            continue
        found = _STATEMENT.fullmatch(text)
        if found is None:
            raise _UnknownError
        yield found["operation"], re.findall(r"\w+", found["modifiers"]), _operands(found["operands"])
