from __future__ import annotations

from pathlib import Path

import pytest
import torch

from uncode import FrequencyTable, UncodeError
from uncode.frequency import UnnamedTable, as_table


def test_a_table_survives_the_disk(tmp_path: Path) -> None:
    table = FrequencyTable(torch.tensor([3, 0, 5]), "small", (1,))
    table.save(tmp_path / "t.safetensors")
    again = FrequencyTable.load(tmp_path / "t.safetensors")
    assert again == table and hash(again) == hash(table) and again.name == "small" and again.special_ids == (1,)
    assert as_table(tmp_path / "t.safetensors") == table and as_table(str(tmp_path / "t.safetensors")) == table
    assert not list(tmp_path.glob("*.partial"))
    assert table != FrequencyTable(torch.tensor([3, 0, 6])) and table != 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FrequencyTable(torch.zeros(2, 2)), "one number per token"),
        (lambda: FrequencyTable(torch.tensor([-1, 2])), "negative"),
        (lambda: FrequencyTable(torch.tensor([float("nan"), 2])), "infinite"),
        (lambda: FrequencyTable(torch.tensor([1, 2]), "x", (9,)), "special ids"),
        (lambda: FrequencyTable(torch.tensor([0, 0])), "at least one"),
        (lambda: as_table(3), "was expected, not int"),  # type: ignore[arg-type]
        (lambda: UnnamedTable().surprisal(), "needs a frequency table"),
    ],
)
def test_mistakes_are_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]
