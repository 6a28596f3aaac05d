"""The real `openstack` client with osc-placement, in an environment of its own: found, installed, and run."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create

ENVIRONMENT = ROOT / ".cache" / "openstack-client"
REQUIREMENTS = ("python-openstackclient==10.5.0", "osc-placement==4.9.1")
VARIABLE = "ROOST_OPENSTACK_CLIENT"
TOKEN = "notused"  # what the client sends with the auth type ``none``
HOW_TO_INSTALL = f"no openstack client: run `make openstack`, or let {VARIABLE} name an `openstack` executable"


def python():
    """Return the Python beside the `openstack` executable; None where there is none, or it lacks osc-placement."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).parent if named else ENVIRONMENT / "bin"
    path = next((each for each in (folder / "python", folder / "python3") if each.exists()), None)
    if path is None:
        return None
    # Looked for and not imported, because that takes a second, and each process that collects tests asks.
    look = "import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, sys.argv[1:])))"
    asked = subprocess.run([path, "-c", look, "openstackclient", "osc_placement"], capture_output=True, check=False)
    return path if asked.returncode == 0 else None


def install():
    """Create the environment with the client in it, unless there is one."""
    if python() is not None:
        print(f"{python()} has the client")
        return
    create(ENVIRONMENT, REQUIREMENTS)


class Client:
    """A process that runs commands of the client, one after the other, without importing it anew each time."""

    def __init__(self):
        program = python()
        assert program is not None, HOW_TO_INSTALL
        # Nothing of the user's own clouds is to be asked.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._process = subprocess.Popen(
            [program, Path(__file__).with_name("openstack_driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, *words):
        """Send words; return what came back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def stop(self):
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Openstack:
    """The `openstack` command, at one server in one version of the API."""

    def __init__(self, client, address, version):
        self._client = client
        self.version = version
        self._words = ["--os-auth-type", "none", "--os-endpoint", address, "--os-placement-api-version", version]
        self.ran = set()

    def _run(self, command, *words):
        self.ran.add(command)
        return self._client.ask(*self._words, *command.split(), *map(str, words))

    def commands(self):
        """Return the names of all commands there are for Placement."""
        return self._client.ask("commands")

    def do(self, command, *words):
        """Run a command that shows nothing."""
        found = self._run(command, *words)
        assert (found["code"], found["out"], found["err"]) == (0, "", ""), (command, words, found)

    def show(self, command, *words):
        """Run a command, and return what it shows."""
        found = self._run(command, *words, "-f", "json")
        assert (found["code"], found["err"]) == (0, ""), (command, words, found)
        return json.loads(found["out"])

    def fail(self, command, *words):
        """Run a command that is refused; return the sentence."""
        found = self._run(command, *words)
        assert found["code"] == 1, (command, words, found)
        return " ".join(found["err"].split())


if __name__ == "__main__":
    install()
