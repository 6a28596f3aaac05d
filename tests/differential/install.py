"""Install the reference: ``python -m tests.differential.install``."""

from tests.differential.reference import install

if __name__ == "__main__":
    install()
