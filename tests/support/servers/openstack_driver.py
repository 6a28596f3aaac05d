"""Run many commands of the `openstack` client without starting it anew, by the Python that has the client.

The client remembers endpoints and columns from one command to the next, so each is run by a fork of its own.

Each line of the input is a list of words in JSON; each line of the output tells what became of them. The words
``["commands"]`` ask for the names of all commands that osc-placement adds.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import sys


def run(words):
    """Run one command; return its exit code and what it wrote."""
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
    """Answer line by line until the input ends."""
    run(["trait", "list", "--help"])  # What this imports, the forks have.
    for line in sys.stdin:
        words = json.loads(line)
        child = os.fork()
        if child == 0:
            print(json.dumps(commands() if words == ["commands"] else run(words)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
