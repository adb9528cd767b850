"""A lake in an object store: the same code on S3, against a server that runs here."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import lake_case as case
import pytest

from wsformat.errors import BadRequest
from wsformat.lake import Lake
from wsformat.tables import tables

ADD = """
import sys, warnings
warnings.simplefilter("ignore")
from wsformat.lake import Lake
lake = Lake.open(sys.argv[1], properties={"s3.endpoint": sys.argv[2]})
print("ready", flush=True)
for path in sys.argv[3:]:
    done = lake.add([path])
    print(len(done.added), len(done.present), flush=True)
"""

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


def test_summaries_on_s3_are_those_of_the_views(endpoint: str, tmp_path: Path) -> None:
    import s3fs

    lake = Lake.init(
        "s3://fleet/kept", catalog=f"sqlite:///{tmp_path}/catalog.sqlite", properties={"s3.endpoint": endpoint}
    )
    lake.add(case.several(1))
    assert lake.summarise() == 1
    assert lake.summarise() == 0
    sql = "SELECT * FROM role_summary"
    kept, live = lake.sql(sql), lake.sql(sql, summaries=False)
    assert kept.num_rows > 0
    assert case.rows(kept) == case.rows(live)
    asked: list[str] = []
    whole = s3fs.S3FileSystem._call_s3

    async def counted(self: object, method: str, *arguments: object, **options: object) -> object:
        asked.append(method)
        return await whole(self, method, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
        lake.sql("SELECT * FROM state_interval")
    files = sum(len(lake.table(name)[1]) for name in tables())
    assert 0 < asked.count("head_object") <= 4 * files, "a file is asked about once, and not each time it is opened"
    with lake.duckdb(sql) as connection:
        assert "events" not in {row[0] for row in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}


def test_writers_at_once_and_a_killed_one_on_s3(endpoint: str, tmp_path: Path) -> None:
    """Two processes add overlapping sets; a third is killed at random moments, then does its work again."""
    options = {"s3.endpoint": endpoint}
    lake = Lake.init("s3://fleet/shared", catalog=f"sqlite:///{tmp_path}/catalog.sqlite", properties=options)
    bundles = case.several(8)[1::3]  # of one partition
    paths = [str(path) for path in case.written(tmp_path / "in", bundles)]
    rng = random.Random(11)
    doomed = case.process(ADD, "s3://fleet/shared", endpoint, *paths[2:])
    tasks = [case.process(ADD, "s3://fleet/shared", endpoint, *share) for share in (paths[:2], paths[1:2])]
    kills = 0
    for _ in range(2):
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.05, 1.5))
        kills += doomed.poll() is None
        case.kill(doomed)
        events = lake.sql("SELECT capture_id, COUNT(*) AS n FROM events GROUP BY ALL").to_pylist()
        assert {row["n"] for row in events} <= {bundles[0].rows("events")}, "half a capture was seen, or one twice"
        doomed = case.process(ADD, "s3://fleet/shared", endpoint, *paths[2:])
    assert kills > 0, "the machine is too quick for this test"
    outputs = [task.communicate() for task in (*tasks, doomed)]
    assert [task.returncode for task in (*tasks, doomed)] == [0, 0, 0], outputs
    found = lake.verify()
    assert (found.captures, found.checked, found.problems) == (3, 3, [])
    assert lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist() == case.ids(bundles)
    lake.compact(retention=0)
    found = lake.verify()
    assert (found.captures, found.problems, found.unfinished, found.orphans) == (3, [], 0, 0)
