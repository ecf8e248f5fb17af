import sys


def decide(check, message="{}", unchecked="this call cannot be checked"):
    """Block the call if a check returns a reason. Exit code 2 blocks, whatever goes wrong on the way."""
    try:
        reason = check()
    except BaseException as error:
        reason = f"{unchecked} ({type(error).__name__})"
    if reason:
        sys.stderr.buffer.write(f"{message.format(reason)}\n".encode("utf-8", "backslashreplace"))
        sys.exit(2)
