"""A lake in an object store: the same code on S3, against a server that runs here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import lake_case as case
import pytest

from wsformat.errors import BadRequest
from wsformat.lake import Lake

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import s3fs
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        patch = pytest.MonkeyPatch()
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        url = f"http://{host}:{port}"
        s3fs.S3FileSystem(endpoint_url=url).mkdir("fleet")
        yield url
        patch.undo()
        server.stop()


def test_a_lake_on_s3(endpoint: str, tmp_path: Path) -> None:
    one, other = case.several(5)[1::3]  # of one partition: every file is a dozen requests
    options = {"s3.endpoint": endpoint}
    with pytest.raises(BadRequest, match="catalog elsewhere"):
        Lake.init("s3://fleet/kernels", properties=options)
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    lake = Lake.init("s3://fleet/kernels", catalog=catalog, properties=options)
    assert lake.add([one]).added == case.ids([one])
    lake.add([other])
    lake.remove(case.ids([other]))
    again = Lake.open("s3://fleet/kernels", properties=options)
    assert again.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [{"n": one.rows("events")}]
    assert again.compact(retention=0).dropped > 0
    case.sound(again)
    assert case.same(again.get(case.ids([one])), one)
    files = again.store.listing("")
    assert all(uri.startswith("s3://fleet/kernels/") for uri in files)
    assert not any("catalog.sqlite" in uri for uri in files)
