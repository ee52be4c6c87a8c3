/* The one argument of most samples: how often their loop runs. */
#pragma once

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

/* The first argument, a whole number of at least `minimum`, or `otherwise` where there is none. Ends the
 * program with status 2, naming the argument `what`, for anything else. */
inline int count_argument(int count, char **arguments, const char *what, int minimum, int otherwise)
{
    if (count == 1)
        return otherwise;
    char *end = arguments[1];
    errno = 0;
    const long value = std::strtol(arguments[1], &end, 10);
    if (count == 2 && end != arguments[1] && *end == '\0' && errno == 0 && value >= minimum && value <= INT_MAX)
        return static_cast<int>(value);
    if (count > 2)
        std::fprintf(stderr, "%s: too many arguments\n", program_invocation_short_name);
    else
        std::fprintf(stderr, "%s: '%s' is no whole number of at least %d\n", program_invocation_short_name,
                     arguments[1], minimum);
    std::fprintf(stderr, "usage: %s [%s]\n", program_invocation_short_name, what);
    std::exit(2);
}
