"""Say how to install the server's optional dependencies."""


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra. The server is not on a package index, so name its checkout or wheel."""
    return f"`pip install ./client '.[{extra}]'` in a checkout, or `pip install 'PATH.whl[{extra}]'` with the server's wheel"
