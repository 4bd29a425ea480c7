"""How many files, and so connections, a process may have open."""

import resource

# Beyond this a process runs out of memory first; some systems set no bound at all.
OPEN_FILES_MAX = 65_536


def raise_open_files() -> int:
    """Take what the system allows: what shells hand out is a few hundred, which one client can use up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
