"""Nova's databases, read with SQL: the API database and those of the cells."""
