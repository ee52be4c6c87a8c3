/* `planted.h`, and what planted programs use of the C++ library. Both are precompiled: a program that includes any of
 * these headers is compiled with this one, and all others with that, which is a third as large and read in a quarter of
 * the time.
 */
#ifndef PLANTED_WITH_LIBRARY_H
#define PLANTED_WITH_LIBRARY_H

#include "planted.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#endif
