"""Virtual environments for external Python programs that tests run."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def create(folder: Path, requirements: Sequence[str]) -> None:
    """Create an environment with packages; an existing one is replaced."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    subprocess.run([*pip, "install", *requirements], check=True)
    print(f"{folder} has {' '.join(requirements)}")


def python_with(module: str, environment: Path, *, named: str | None) -> Path | None:
    """Return the named Python, or that of an environment, if it can import a module; otherwise None."""
    path = Path(named) if named else environment / "bin" / "python"
    if not path.exists():
        return None
    result = subprocess.run([path, "-c", f"import {module}"], capture_output=True, check=False)
    return path if result.returncode == 0 else None
