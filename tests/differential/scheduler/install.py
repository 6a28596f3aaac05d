"""Install the reference for filters and weighers: ``python -m tests.differential.scheduler.install``."""

from tests.differential.scheduler.nova import install

if __name__ == "__main__":
    install()
