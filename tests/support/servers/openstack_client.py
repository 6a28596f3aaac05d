"""Find, install and run the real `openstack` client with osc-placement in a separate environment."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create

ENVIRONMENT = ROOT / ".cache" / "openstack-client"
REQUIREMENTS = ("python-openstackclient==10.5.0", "osc-placement==4.9.1")
VARIABLE = "ROOST_OPENSTACK_CLIENT"
TOKEN = "notused"  # the client's token for the auth type ``none``
HOW_TO_INSTALL = f"no openstack client: run `make openstack`, or let {VARIABLE} name an `openstack` executable"


def python():
    """Return the Python next to the `openstack` executable, or None without executable or osc-placement."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).parent if named else ENVIRONMENT / "bin"
    path = next((each for each in (folder / "python", folder / "python3") if each.exists()), None)
    if path is None:
        return None
    # Find the modules without an import, which takes a second in each process that collects tests.
    look = "import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, sys.argv[1:])))"
    result = subprocess.run([path, "-c", look, "openstackclient", "osc_placement"], capture_output=True, check=False)
    return path if result.returncode == 0 else None


def install():
    """Create the environment with the client, unless it exists."""
    if python() is not None:
        print(f"{python()} has the client")
        return
    create(ENVIRONMENT, REQUIREMENTS)


class Client:
    """A process that runs commands of the client one by one, and imports the client only once."""

    def __init__(self):
        program = python()
        assert program is not None, HOW_TO_INSTALL
        # Remove the user's cloud settings.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._process = subprocess.Popen(
            [program, Path(__file__).with_name("openstack_driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, *words):
        """Send the arguments of a command; return the result."""
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
    """The `openstack` command for one server and one version of the API."""

    def __init__(self, client, address, version):
        self._client = client
        self.version = version
        self._words = ["--os-auth-type", "none", "--os-endpoint", address, "--os-placement-api-version", version]
        self.ran = set()

    def _run(self, command, *words):
        self.ran.add(command)
        return self._client.ask(*self._words, *command.split(), *map(str, words))

    def commands(self):
        """Return the names of all Placement commands."""
        return self._client.ask("commands")

    def do(self, command, *words):
        """Run a command without output."""
        result = self._run(command, *words)
        assert (result["code"], result["out"], result["err"]) == (0, "", ""), (command, words, result)

    def show(self, command, *words):
        """Run a command, and return its JSON output."""
        result = self._run(command, *words, "-f", "json")
        assert (result["code"], result["err"]) == (0, ""), (command, words, result)
        return json.loads(result["out"])

    def fail(self, command, *words):
        """Run a command that fails; return the error message."""
        result = self._run(command, *words)
        assert result["code"] == 1, (command, words, result)
        return " ".join(result["err"].split())


if __name__ == "__main__":
    install()
