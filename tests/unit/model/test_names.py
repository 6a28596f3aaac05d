"""Names and uuids."""

from roost.model.names import derive_uuid


def test_derived_uuid_is_deterministic_and_of_version_8():
    uuid = derive_uuid("decision", "me", "k")
    assert uuid == derive_uuid("decision", "me", "k")
    assert (uuid[14], uuid[19] in "89ab") == ("8", True)
    assert len({uuid, derive_uuid("decision", "me", "l"), derive_uuid("instance", "me", "k")}) == 3
