"""Run many commands of the `openstack` client in one process, with the Python of the client's environment.

The client keeps endpoints and columns between commands, so each command runs in a new fork.

Each line of the input is a JSON list of arguments; each line of the output is the result. The arguments
``["commands"]`` return the names of all commands that osc-placement adds.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import sys


def run(words):
    """Run one command; return its exit code and its output."""
    from openstackclient import shell

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = shell.main(words)
        except SystemExit as error:
            code = error.code
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def commands():
    """Return the names of the commands that osc-placement adds."""
    found = importlib.metadata.entry_points(group="openstack.placement.v1")
    return sorted(entry.name.replace("_", " ") for entry in found)


def main():
    """Run the command of each input line until the input ends."""
    run(["trait", "list", "--help"])  # The forks inherit its imports.
    for line in sys.stdin:
        words = json.loads(line)
        child = os.fork()
        if child == 0:
            print(json.dumps(commands() if words == ["commands"] else run(words)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
