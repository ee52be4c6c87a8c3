/* Does one of the things, as the command line says; without arguments, prints their names. */
#define _GNU_SOURCE
#include "bad.h"

#include <stdio.h>
#include <string.h>

extern const thing __start_things[], __stop_things[];

char **arguments;
const char *option;

__attribute__((constructor)) static void early(int count, char **given)
{
    if (count > 1 && strcmp(given[1], "constructor") == 0)
        use_gpu();
}

__attribute__((destructor)) static void late(void)
{
    if (arguments != NULL && strcmp(arguments[1], "destructor") == 0)
        late_use();
    if (arguments != NULL && strcmp(arguments[1], "destructor_abort") == 0)
        abort();
    if (arguments != NULL && strcmp(arguments[1], "destructor_fault") == 0)
        null();
}

/* These act before and after `main`. */
THING(constructor) {}
THING(destructor) {}
THING(destructor_abort) {}
THING(destructor_fault) {}

static const thing *find(const char *name)
{
    for (const thing *one = __start_things; one < __stop_things; one++)
        if (strcmp(one->name, name) == 0)
            return one;
    return NULL;
}

int main(int count, char **given)
{
    if (count < 2) {
        for (const thing *one = __start_things; one < __stop_things; one++)
            puts(one->name);
        return 0;
    }
    arguments = given;
    option = count > 3 ? given[3] : "";
    const thing *found = find(given[1]);
    if (found == NULL)
        return 92;
    if (count > 2 && strcmp(given[2], "before") == 0)
        found->act();
    use_gpu();
    if (count > 2 && strcmp(given[2], "between") == 0) {
        found->act();
        use_gpu();
    }
    say("done\n");
    return 0;
}
