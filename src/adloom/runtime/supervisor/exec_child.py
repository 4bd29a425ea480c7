"""A script that becomes another program, one that the kernel ends when its parent dies.

Run by path in an isolated interpreter (`python -I -S exec_child.py …`), so it imports next to
nothing. It is a program between two others, and not a function between `fork` and `exec`,
because the parent has threads. Linux only; elsewhere it just becomes the program.
"""

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Take `DEATH_SIGNAL PARENT_PID USER FOLDER PROGRAM ARGUMENTS…` and become the program."""
    death_signal, parent, user, folder, *command = arguments
    # Until the program is there, stop signals simply end us.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Loaded first: the user may not be able to read the interpreter's own files.
    libc = ctypes.CDLL(None)
    if folder:
        command = open_folder(folder, command)
    if user:
        become(user)
    # After the change of user, which would undo it.
    die_with(int(parent), int(death_signal), libc)
    os.execv(command[0], command)  # noqa: S606 - our own program with our own arguments


def die_with(parent: int, death_signal: int, libc: ctypes.CDLL | None = None) -> None:
    """Have the kernel end this process when its parent dies."""
    if sys.platform == "linux":
        (libc or ctypes.CDLL(None)).prctl(PR_SET_PDEATHSIG, death_signal)
        # A parent that was dead before we asked gets no child.
        if os.getppid() != parent:
            sys.exit(1)


def open_folder(folder: str, command: list[str]) -> list[str]:
    """Open a folder that the user cannot reach, and use its descriptor in the command.

    A process may use an open folder, whatever the folders above it allow.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(handle, True)  # noqa: FBT003 - as the system declares it
    return [word.replace(folder, f"/proc/self/fd/{handle}") for word in command]


def become(user: str) -> None:
    """Give up root's rights for good."""
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


if __name__ == "__main__":
    main(sys.argv[1:])
