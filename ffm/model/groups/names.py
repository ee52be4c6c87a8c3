"""Base names of C++ functions: what makes two call stacks "the same by function name" (dissertation 5.2).

Works on demangled names in the notations of GNU (`c++filt`) and LLVM (`llvm-symbolizer`).
"""

from __future__ import annotations

import functools
import re

DROPPED = "<...>"
"""Replaces the template arguments that were dropped (dissertation, Figure 5.3)."""

_CLONE = re.compile(
    r"(?: ?[\[(](?:clone )?(?:\.[A-Za-z_]+(?:\.\d+)*)+[\])]|\.(?:cold|part|isra|constprop|llvm)(?:\.\d+)*)+$"
)
_TRAILING_QUALIFIER = re.compile(r"(?:\s*(?:\bconst|\bvolatile|\bnoexcept|&&?))+$")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|`anonymous namespace'|\{anonymous\}")
_SYMBOL_OPERATOR = re.compile(
    r"operator\s*(?:\(\)|\[\]|<=>|->\*|->|<<=|>>=|<<|>>|<=|>=|&&|\|\||\+\+|--"
    r"|[-+*/%^&|=!]=|[-+*/%^&|~!=<>,]|\"\"\s*\w+)"
)
_NAMED_OPERATOR = re.compile(r"operator\s+(?:new|delete)(?:\s*\[\])?|operator\s+co_await")
_CONVERSION = re.compile(r"(?:^|::)operator\s+[^\s(]")
_CONSTRUCT = "!$"
"""How names of constructs begin that are no functions: Score-P's `!$omp critical @solve.c:12`."""
_PYTHON = re.compile(r"(?:^|\.)<\w+>(?:\.|$)")
"""In a Python name: `<module>`, `solve.<locals>.step`, `<lambda>`."""
_OPENING = {"(": ")", "<": ">", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


@functools.lru_cache(maxsize=1 << 16)
def base_name(name: str) -> str:
    """Return the qualified name of a demangled function without return type, parameters and template arguments.

    `void thrust::pair<int, A<B> >::swap<C>(thrust::pair<int, A<B> >&) const` gives `thrust::pair<...>::swap<...>`.
    Operators, conversions, lambdas and anonymous namespaces are kept. Compilers' clones (`.cold`, `[clone .isra.0]`)
    count as their function. Text that is not a C++ name (`cudaFree`, `??`, `!$omp for @solve.c:12`) comes back
    unchanged, and so does a name whose brackets do not match: nothing is guessed.
    """
    if name.startswith(_CONSTRUCT) or _PYTHON.search(name):
        return name
    text = _CLONE.sub("", name.strip())
    text = _ANONYMOUS.sub("{anonymous namespace}", text)
    protected: list[str] = []

    def protect(match: re.Match[str]) -> str:
        protected.append(match[0])
        return f"\0{len(protected) - 1}\0"

    text = _SYMBOL_OPERATOR.sub(protect, _NAMED_OPERATOR.sub(protect, text))
    short = _without_brackets(_declarator(text))
    if short is None:
        return name
    short = _last_word(_without_function_type(short))
    short = re.sub("\0(\\d+)\0", lambda match: protected[int(match[1])], short)
    return short.replace("{anonymous namespace}", "(anonymous namespace)") or name


def _without_brackets(text: str) -> str | None:
    """Replace outermost `<…>` by `<...>` and outermost `(…)` by `()`; keep `{…}`; None if brackets do not match."""
    kept: list[str] = []
    open_brackets: list[str] = []
    for index, character in enumerate(text):
        visible = not any(bracket in "(<[" for bracket in open_brackets)
        if character in _OPENING:
            if visible:
                kept.append(character if character in "({[" else DROPPED)
            open_brackets.append(character)
        elif character in _CLOSING:
            if character == ">" and index and text[index - 1] == "-":  # a trailing return type's arrow
                if visible:
                    kept.append(character)
                continue
            if character == ">" and open_brackets[-1:] == ["("]:  # a comparison in a template argument
                continue
            while open_brackets[-1:] == ["<"] and character != ">":  # the other half of such a comparison
                open_brackets.pop()
            if not open_brackets or _OPENING[open_brackets.pop()] != character:
                return None
            if character in ")}]" and not any(bracket in "(<[" for bracket in open_brackets):
                kept.append(character)
        elif visible:
            kept.append(character)
    return None if open_brackets else "".join(kept)


def _declarator(text: str) -> str:
    """For a function that returns a function pointer, `int (*f(char))(double)`, return the inner `f(char)`; otherwise
    the text.
    """
    text = re.sub(r" -> .*$", "", text)
    match = re.fullmatch(r"[^()]*\([*&]+\s*(.*)\)\([^()]*\)", text)
    return match[1] if match else text


def _without_function_type(text: str) -> str:
    """Cut off the parameter list and what follows it: `int f() const` becomes `int f`, `f()::{lambda()#1}::g()` becomes
    `f()::{lambda()#1}::g`.

    Only the last parameter list is the function's own. Earlier ones belong to the functions that enclose a local class
    or lambda; they are kept, empty.
    """
    text = _TRAILING_QUALIFIER.sub("", text)
    text = re.sub(r"\[abi:[^\]]*\]", "", text).replace("[]", "")
    while text.endswith("()"):
        text = _TRAILING_QUALIFIER.sub("", text[:-2].rstrip())
    return text.replace(" " + DROPPED, DROPPED)


def _last_word(text: str) -> str:
    """Drop a leading return type: everything before the last blank outside braces and outside a conversion operator."""
    conversion = _CONVERSION.search(text)
    end = conversion.start() if conversion else len(text)
    depth = 0
    for index in range(end - 1, -1, -1):
        if text[index] == "}":
            depth += 1
        elif text[index] == "{":
            depth -= 1
        elif text[index] == " " and depth == 0:
            return text[index + 1 :].lstrip("*& ")
    return text.lstrip("*& ")


_STARTS_A_THREAD = re.compile(r"_start|generic_start_main.*|__libc_start_.*|start_thread|thread_start|_*clone3?")


@functools.lru_cache(maxsize=1 << 16)
def starts_a_thread(function: str) -> bool:
    """Return whether a function of the C library starts a program or a thread; it is on all stacks and says nothing.

    Machines with debug information for the C library know its lines, too.
    """
    return _STARTS_A_THREAD.fullmatch(function) is not None
