"""Base names of C++ functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.groups.names import base_name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("cudaFree", "cudaFree"),
        ("??", "??"),
        ("!$omp critical @solve.c:12", "!$omp critical @solve.c:12"),
        ("_Z3fooi", "_Z3fooi"),
        ("doALS(int const*, float)", "doALS"),
        ("f(int, ...)", "f"),
        ("X::f(int) const &&", "X::f"),
        ("A::~A()", "A::~A"),
        ("T* A<T>::get()", "A<...>::get"),
        ("void foo(std::function<void (int)>)", "foo"),
        ("std::enable_if<(1)>::type f<int>(A)", "f<...>"),
        ("decltype(auto) f<int>(int)", "f<...>"),
        ("auto f<int>(int) -> int", "f<...>"),
        ("int (*get(char))(double)", "get"),
        # Figure 5.3 of the dissertation
        ("void cusp::system::detail::generic::multiply<A<int, B<float> >, C>(D<E> const&)",
         "cusp::system::detail::generic::multiply<...>"),
        ("thrust::detail::contiguous_storage<int, A<int> >::deallocate()",
         "thrust::detail::contiguous_storage<...>::deallocate"),
        ("thrust::pair<int, A<B> >::swap<C>(thrust::pair<int, A<B> >&) const",
         "thrust::pair<...>::swap<...>"),
        # comparisons and casts in template arguments
        ("A<(B)0>::f()", "A<...>::f"),
        ("A<(1>2)>::f()", "A<...>::f"),
        ("A<(1<2)>::f()", "A<...>::f"),
        # operators
        ("a::b::operator<(int)", "a::b::operator<"),
        ("bool operator< <int>(A<int> const&)", "operator<<...>"),
        ("std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<<<...>"),
        ("a::operator>>(b&)", "a::operator>>"),
        ("A<int>::operator()(int) const", "A<...>::operator()"),
        ("A<int>::operator[](int)", "A<...>::operator[]"),
        ("A::operator->() const", "A::operator->"),
        ("operator new[](unsigned long)", "operator new[]"),
        ("A::operator unsigned long() const", "A::operator unsigned long"),
        ("A::operator std::vector<int>() const", "A::operator std::vector<...>"),
        ('operator"" _km(long double)', 'operator"" _km'),
        # lambdas and anonymous namespaces
        ("foo(int)::{lambda(int)#1}::operator()(int) const", "foo()::{lambda()#1}::operator()"),
        ("foo(int)::'lambda'(float)::operator()(float) const", "foo()::'lambda'()::operator()"),
        ("void (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f<...>"),
        ("(anonymous namespace)::Foo<int>::bar(int)", "(anonymous namespace)::Foo<...>::bar"),
        # what compilers append
        ("foo(int) [clone .isra.0]", "foo"),
        ("foo.cold", "foo"),
        ("generic_start_main.isra.0", "generic_start_main"),
        ("std::string<char>::c_str[abi:cxx11]() const", "std::string<...>::c_str"),
        # brackets of Python names are not template arguments
        ("<module>", "<module>"),
        ("train.<locals>.<lambda>", "train.<locals>.<lambda>"),
        ("Model.step", "Model.step"),
        # not a C++ name: nothing is guessed
        ("broken<int(", "broken<int("),
        ("", ""),
    ],
)  # fmt: skip
def test_base_name(name: str, base: str) -> None:
    assert base_name(name) == base


def test_instances_of_a_template_are_one_function() -> None:
    assert base_name("void f<int>(int)") == base_name("void f<float>(float)")
    assert base_name("void f<int>(int)") != base_name("void g<int>(int)")


@given(st.text(alphabet="ab:<>(){}[]~&* ,", max_size=25))
def test_any_text_has_a_base_name(name: str) -> None:
    assert base_name(name) or not name.strip("*& ")
