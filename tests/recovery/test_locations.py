"""Locations of checkpoints: folders, and buckets in builds that have a client of object stores."""

import pytest

import pointstamp as ps


def test_a_location_is_a_folder_or_a_bucket() -> None:
    for place in ("s3://bucket/prefix", "gs://bucket", "az://bucket/a/b", "state/"):
        assert ps.Checkpoint(place).location == place
    for place in ("http://host/state", "file:///state", "S3://bucket"):
        with pytest.raises(ps.ConfigError, match="kept in folders, and in buckets at s3://, gs:// and az://"):
            ps.Checkpoint(place)


def test_a_build_without_a_client_says_how_to_get_one() -> None:
    config = ps.Config(checkpoint=ps.Checkpoint("s3://bucket.invalid/prefix"))
    with pytest.raises(ps.CheckpointError, match=r"s3://bucket\.invalid/prefix") as error:
        ps.execute(lambda worker: None, config=config)
    if "this one has none" not in str(error.value):
        pytest.skip("the build has a client of object stores")
    assert "make build FEATURES=cloud" in str(error.value)
