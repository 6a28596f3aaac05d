"""Environments of Python for programs that tests run as they are, beside the product and not in it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def create(folder: Path, requirements: Sequence[str]) -> None:
    """Create an environment with some packages, anew where there was one."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    subprocess.run([*pip, "install", *requirements], check=True)
    print(f"{folder} has {' '.join(requirements)}")


def python_with(module: str, environment: Path, *, named: str | None) -> Path | None:
    """Return a Python that can import a module: the one named, else that of an environment; None where it cannot."""
    path = Path(named) if named else environment / "bin" / "python"
    if not path.exists():
        return None
    asked = subprocess.run([path, "-c", f"import {module}"], capture_output=True, check=False)
    return path if asked.returncode == 0 else None
