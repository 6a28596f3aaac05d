"""The folder in which the processes of one server combine their metrics."""

import os

# Set by the parent process for its workers, and read by the library.
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def environment_without_metrics() -> dict[str, str]:
    """Return the environment for a helper process, which has no metrics and must not add zeros to the folder."""
    return {name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE}
