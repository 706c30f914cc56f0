"""Rows on disk: whatever dies, and wherever, a row is there whole or not at all."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import StoreError
from mlflow_mcq.records import Decoding, Item, Message, Orientation, Prompt, Reply, Request
from mlflow_mcq.store.journal import open_journal
from mlflow_mcq.store.row_file import RowFile, scan
from mlflow_mcq.store.row_key import row_key
from mlflow_mcq.store.row_store import RowStore

KEYS = [bytes([n]) * 16 for n in range(8)]
ITEM = Item("q", "Which?", ("x", "y", "z"), gold=1)


def request(**changes: object) -> Request:
    parts = {"order": (0, 1, 2), "content": "Which?", "repeat": 0, "protocol": "letters", **changes}
    item = parts.get("item", ITEM)
    orientation = Orientation(0, "as-is", parts["order"])
    return Request(
        Prompt(item, orientation, parts["protocol"], parts["content"], ()), parts["repeat"]
    )


@pytest.mark.parametrize(
    ("changes", "decoding", "model"),
    [
        pytest.param({}, Decoding(), "other", id="another model"),
        pytest.param({"order": (1, 0, 2)}, Decoding(), "m", id="another order"),
        pytest.param({"content": "Which one?"}, Decoding(), "m", id="another prompt"),
        pytest.param({"content": (Message("user", "Which?"),)}, Decoding(), "m", id="as a chat"),
        pytest.param({"repeat": 1}, Decoding(), "m", id="another repeat"),
        pytest.param({"protocol": "dashes"}, Decoding(), "m", id="another protocol"),
        pytest.param({}, Decoding(max_new_tokens=9), "m", id="another length"),
        pytest.param({}, Decoding(stop=("\n",)), "m", id="another stop"),
        pytest.param({}, Decoding(temperature=0.5), "m", id="sampled"),
        pytest.param({}, Decoding(thinking=False), "m", id="without thinking"),
        pytest.param(
            {"content": (Message("system", "Be brief."), Message("user", "Which?"))},
            Decoding(),
            "m",
            id="with a system message",
        ),
    ],
)
def test_whatever_changes_a_row_changes_its_key(changes, decoding, model):
    assert row_key(model, request(**changes), decoding) != row_key("m", request(), Decoding())


def test_the_seed_counts_only_where_lots_are_drawn():
    def key(**drawn: object) -> bytes:
        return row_key("m", request(), Decoding(**drawn))

    assert key(seed=1) == key(seed=2)
    assert key(seed=1, temperature=1.0) != key(seed=2, temperature=1.0)


def test_rows_on_disk_are_found_by_later_versions():
    chat = (Message("user", "hi \u2028"), Message("assistant", "x"))
    sampled = Decoding(temperature=0.6, seed=3, stop=("\n\n",), top_p=0.9, thinking=True)
    assert row_key("m é", request(), Decoding()).hex() == "ce73e20ea6b52d18f1084f0cf4525aaf"
    assert (
        row_key("m é", request(content=chat), sampled).hex() == "c39a8044e6c99f8beecf3c1381c2e935"
    )


def test_data_that_is_no_unicode_has_a_key_and_a_row(tmp_path):
    odd = "half \ud800 pair\n\x00\u2028"
    key = row_key("m", request(content=odd), Decoding())
    with RowStore(tmp_path) as store:
        store.put(key, Reply(odd))
    with RowStore(tmp_path) as store:
        assert store.get(key) == Reply(odd)


replies = st.builds(
    Reply,
    text=st.text(st.characters(codec=None)),
    finish_reason=st.sampled_from(["eos", "length", ""]),
    token_ids=st.lists(st.integers(0, 2**31)).map(tuple),
    n_prompt_tokens=st.integers(0, 10**6),
    n_tokens=st.integers(0, 10**6),
    sent=st.text(),
)


@given(st.dictionaries(st.binary(min_size=16, max_size=16), replies, max_size=6))
def test_what_was_put_is_found(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    with RowStore(folder) as store:
        for key, reply in rows.items():
            assert store.put(key, reply)
            assert store.get(key) == reply
    with RowStore(folder) as again:
        assert {key: again.get(key) for key in again} == rows


def filled(folder: Path, n_rows: int = 3) -> Path:
    with RowStore(folder, writer="one") as store:
        for key in KEYS[:n_rows]:
            store.put(key, Reply(f"reply {key[0]}", token_ids=(1, 2)))
    return folder / "one.rows"


def test_a_file_cut_anywhere_gives_the_whole_rows_before_the_cut(tmp_path):
    path = filled(tmp_path)
    data = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        assert len(list(scan(path))) == sum(end <= cut for end in ends)


def test_writing_goes_on_after_a_torn_line(tmp_path):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    with RowStore(tmp_path, writer="one") as store:
        assert len(store) == 2
        assert store.put(KEYS[2], Reply("again"))
    with RowStore(tmp_path) as store:
        assert [store.get(key).text for key in KEYS[:3]] == ["reply 0", "reply 1", "again"]


@pytest.mark.parametrize("place", [0, 5, 33, 40, 50])
def test_a_damaged_row_is_made_again_and_the_others_stay(tmp_path, place):
    path = filled(tmp_path)
    data = bytearray(path.read_bytes())
    data[place] ^= 0x01
    path.write_bytes(bytes(data))
    with RowStore(tmp_path) as store:
        assert sorted(store) == KEYS[1:3]


def test_the_first_reply_of_a_key_stands(tmp_path):
    filled(tmp_path, 1)
    with RowStore(tmp_path, writer="two") as store:
        assert not store.put(KEYS[0], Reply("another"))
        assert store.put(KEYS[1], Reply("new"))
    lines = [line for path in tmp_path.glob("*.rows") for line in path.read_bytes().splitlines()]
    assert len(lines) == len({line[:32] for line in lines}) == 2


def test_two_writers_at_once_lose_nothing(tmp_path):
    with RowStore(tmp_path) as one, RowStore(tmp_path) as two:
        one.put(KEYS[0], Reply("a"))
        two.put(KEYS[1], Reply("b"))
        one.put(KEYS[2], Reply("c"))
    with RowStore(tmp_path) as store:
        assert len(store) == 3


def test_an_error_is_not_kept(tmp_path):
    with RowStore(tmp_path) as store:
        assert not store.put(KEYS[0], Reply(None, "timeout"))
    with RowStore(tmp_path) as store:
        assert len(store) == 0


def test_a_full_disk_costs_the_row_under_way_and_no_other(tmp_path):
    path = filled(tmp_path)
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = RowStore(tmp_path, writer="one")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, hard))
    try:
        with pytest.raises(StoreError, match="will not be made again"):
            store.put(KEYS[3], Reply("does not fit" * 9))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.stat().st_size == size
    assert store.put(KEYS[3], Reply("fits"))
    store.close()
    with RowStore(tmp_path) as again:
        assert len(again) == 4


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="must be a folder"):
        RowStore(tmp_path / "file")


KILLED = """
import os, sys
from mlflow_mcq.store.row_store import RowStore
from mlflow_mcq.records import Reply
store = RowStore(sys.argv[1])
for n in range(int(sys.argv[2])):
    store.put(n.to_bytes(16, "big"), Reply("x" * n))
os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_every_row_it_put(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "500"], check=False)
    assert done.returncode == -9
    with RowStore(tmp_path) as store:
        assert len(store) == 500
        assert store.get((499).to_bytes(16, "big")) == Reply("x" * 499)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path))
    return tmp_path


def test_a_run_that_ended_well_leaves_nothing(home):
    journal = open_journal("run", "abc")
    journal.rows.put(KEYS[0], Reply("a"))
    journal.close(finished=True)
    assert not (home / "runs" / "abc").exists()


def test_a_run_that_broke_off_is_taken_up(home):
    journal = open_journal("run", "abc")
    journal.rows.put(KEYS[0], Reply("a"))
    journal.close(finished=False)
    again = open_journal("run", "abc")
    assert again.rows.get(KEYS[0]) == Reply("a")
    again.close(finished=True)


def test_the_same_run_twice_at_once_is_refused_by_name(home):
    first = open_journal("run", "abc")
    with pytest.raises(StoreError, match=r"under way: process \d+ on .* since"):
        open_journal("run", "abc")
    first.close(finished=True)
    open_journal("run", "abc").close(finished=True)


def test_a_folder_of_the_users_is_shared_and_stays(home):
    one, two = open_journal(str(home / "mine"), "a"), open_journal(str(home / "mine"), "b")
    one.rows.put(KEYS[0], Reply("a"))
    one.close(finished=True)
    two.close(finished=True)
    assert len(list((home / "mine").glob("*.rows"))) == 1


def test_off_keeps_nothing(home):
    assert open_journal("off", "abc") is None
    assert list(home.iterdir()) == []


def test_a_file_is_closed_once(tmp_path):
    file = RowFile(tmp_path / "x.rows")
    file.close()
    file.close()
