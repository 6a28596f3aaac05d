import json
import re
from pathlib import Path

import pytest

from roost.settings import schema

TEXT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("setting", schema(), ids=lambda setting: f"{setting.section}.{setting.key}")
def test_setting_is_documented_in_its_section_with_its_default(setting):
    section = re.search(rf"^## {setting.section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert section, f"docs/settings.md has no section {setting.section}"
    entry = re.search(rf"^### {setting.key}\n(.*?)(?=^### |\Z)", section[1], re.DOTALL | re.MULTILINE)
    assert entry, f"docs/settings.md does not describe {setting.key}"
    assert setting.description in entry[1]
    assert f"default `{json.dumps(setting.default)}`" in entry[1]
    assert [owner for owner in setting.owners if f"`{owner}`" not in entry[1]] == []
