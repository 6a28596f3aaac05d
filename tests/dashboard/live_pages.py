"""Wait until a page receives the events of its server."""

import re


def wait_until_live(page) -> None:
    """Wait until the stream of a page is open, and its view is shown.

    A page that is still loading says neither that it is live nor that it is not.
    """
    from playwright.sync_api import expect

    expect(page.get_by_role("status").filter(has_text=re.compile("^Live$"))).to_be_visible()
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
