"""``python -m tests.parity`` writes the tables of features into the document."""

from tests.parity.table import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page())
