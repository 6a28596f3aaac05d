"""``python -m roost``: the ``roost`` command, for environments where it is not on the path."""

from roost.cli import main

if __name__ == "__main__":
    main()
