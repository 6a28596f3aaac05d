"""Migrations, run by ``upgrade.upgrade`` and by nothing else. They only add."""
