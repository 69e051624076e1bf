"""Options that are given more than once."""

from __future__ import annotations

import csv
import io
import json
from typing import Any


def test_lists_may_be_named_again(cli: Any) -> None:
    words = ("compare", "--net", "alexnet", "--net", "resnet_18", "--hw", "gtx_1080", "--hw", "tesla_k40,i7_6700k", "--csv")
    found = cli(*words)
    assert found.code == 0, found.err
    rows = [*csv.DictReader(io.StringIO(found.out))]
    assert {row["network"] for row in rows} == {"alexnet", "resnet_18"}
    assert {row["hardware"] for row in rows} == {"gtx_1080", "tesla_k40", "i7_6700k"}


def test_a_list_has_its_usual_value_and_a_needed_one_is_asked_for(cli: Any) -> None:
    assert [one["network"] for one in json.loads(cli("compare", "--hw", "gtx_1080", "--json").out)] == ["alexnet"]
    missing = cli("compare", "--net", "alexnet")
    assert missing.code == 2
    assert "--hw" in missing.err
