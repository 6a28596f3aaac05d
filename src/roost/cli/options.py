"""Options that several commands have."""

from pathlib import Path

import click

PATH = click.Path(path_type=Path, readable=False)  # What cannot be read is told where it is opened.

config = click.option("--config", type=PATH, help="Settings, a TOML file.")
data = click.option("--data", type=PATH, help="Folder of the database.")
conf = click.option("--conf", type=PATH, help="An existing placement.conf, which goes before the settings.")
