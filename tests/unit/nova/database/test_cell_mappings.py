"""Templates of URLs in the mappings of cells."""

import pytest

from roost.nova.database.cell_mappings import CellMapping, fill_template
from roost.nova.database.nova_fleet import Cell

DATABASE = "mysql+pymysql://nova:secret@db:3306/nova_cell0?charset=utf8"
SERVERS = "rabbit://one:first@mq1:5672,two:second@mq2/vhost"


@pytest.mark.parametrize(
    ("template", "default", "url"),
    [
        ("{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}", DATABASE, DATABASE),
        ("{scheme}://{username}:{password}@db2/cell2", DATABASE, "mysql+pymysql://nova:secret@db2/cell2"),
        (
            "rabbit://{username1}:{password1}@{hostname1}:{port1},{hostname2}/{path}",
            SERVERS,
            "rabbit://one:first@mq1:5672,mq2/vhost",
        ),
        ("mysql://nova:secret@db/nova", DATABASE, "mysql://nova:secret@db/nova"),
        ("mysql://nova:a{b@db/nova", DATABASE, "mysql://nova:a{b@db/nova"),
        ("mysql://nova:a{b@db/nova", "", "mysql://nova:a{b@db/nova"),
        ("mysql://{username}@db/nova", "", None),
        ("mysql://{username9}@db/nova", DATABASE, None),
    ],
)
def test_template_is_filled_like_nova_does(template, default, url):
    assert fill_template(template, default) == url


def test_text_of_a_mapping_has_no_password():
    mapping = CellMapping(id=1, cell=Cell(uuid="u", name="cell1"), database_url=DATABASE)
    assert "secret" not in f"{mapping} {mapping!r}"
