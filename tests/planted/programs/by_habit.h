// What the programs about habits have in common: in which turns they use what came, or was sent. In each, in one of
// 107, in all but these, or up to a turn.
#pragma once

#include "planted.h"

#include <string>

constexpr int count = 16, distance = 107;

/* A kind may be tried more often than the other watch, or a proof, has time for. */
static const char *const kinds[] = {"each", "some", "most", "until"};

static bool is(const char *kind)
{
    return variant(kind) || variant((std::string(kind) + "_often").c_str());
}

static int turns()
{
    for (const char *kind : kinds)
        if (variant(kind))
            return planted::proving() ? 3 : 160;
    return 1400;
}

/* In one turn of each 107, at irregular distances. */
static bool is_odd(int turn)
{
    return turn % distance == turn / distance * 29 % distance;
}

static bool reads(int turn)
{
    if (is("until"))
        return turn < turns() / 2;
    if (is("some"))
        return is_odd(turn);
    return is("each") || !is_odd(turn);
}
