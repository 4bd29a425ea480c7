"""Stop a server that was measured: asked first, then killed."""

import subprocess


def stop(process: subprocess.Popen[bytes], *, seconds_max: float) -> None:
    """Stop a process and wait for its end."""
    process.terminate()
    try:
        process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
