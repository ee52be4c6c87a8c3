"""Which waits ended late by chance.

Now and then something delays a waiting thread for much longer than waking takes: another program, an interrupt, the
host of a virtual machine. A fix does not save that. Another run has it elsewhere or not at all, and where a site has it
hardly ever, it does not come with the wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.grouping import parts

SELDOM = 0.05
"""At most this share of a site's waits is late by chance. If more are, a thread comes late whenever it sleeps, as on a
busy machine, and is not delayed where it does not wait.
"""

LATE_TIMES = 4
"""A wait is late if its latency is this many times the usual one."""

NEVER_NS = 1 << 62


def late_from(site: NDArray[np.int32], latency: NDArray[np.int64], usual_ns: int) -> NDArray[np.int64]:
    """Return the latency in nanoseconds from which on a wait of each site was late by chance; `NEVER_NS` if none was.

    `site` and `latency` have shape (n,). The latency is from the end of the GPU's work until the CPU continues,
    negative where nothing was waited for; `usual_ns` is the run's usual one.
    """
    sites = int(site.max(initial=-1)) + 1
    waits, late = np.zeros(sites, np.int64), np.zeros(sites, np.int64)
    limit = max(LATE_TIMES * usual_ns, 1)
    for part in parts(len(site)):
        beyond = latency[part]
        waits += np.bincount(site[part][beyond >= 0], minlength=sites)
        late += np.bincount(site[part][beyond >= limit], minlength=sites)
    return np.where(late <= SELDOM * waits, limit, NEVER_NS)
