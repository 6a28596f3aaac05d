"""``python -m tests.parity`` writes the feature tables into the document."""

from tests.parity.table import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page())
