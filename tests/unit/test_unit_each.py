"""A test over many values fails with every value that fails, and passes only if there are some."""

from __future__ import annotations

import pytest

from ..each import each


def test_every_value_that_fails_is_named() -> None:
    @each("x", [1, -2, 3, -4])
    def check(x: int) -> None:
        assert x > 0

    with pytest.RaisesGroup(AssertionError, AssertionError) as caught:
        check()
    assert str(caught.value) == "2 of 4 fail (2 sub-exceptions)"
    assert [error.__notes__ for error in caught.value.exceptions] == [["for x = -2"], ["for x = -4"]]


def test_no_values_are_no_success() -> None:
    @each("x", [])
    def check(x: int) -> None:
        """Nothing to check."""

    with pytest.raises(AssertionError, match="no values"):
        check()


@each("x", [1, 2])
def test_fixtures_come_beside_the_values(x: int, tmp_path) -> None:
    (tmp_path / str(x)).touch()
    assert len(list(tmp_path.iterdir())) == x
