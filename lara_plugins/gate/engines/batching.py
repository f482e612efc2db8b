"""Which pairs go through a model together."""

from __future__ import annotations

from collections.abc import Sequence


def batches_by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group positions of similar length, so that padding wastes little and memory is bounded.

    A batch is padded to its longest pair and so costs ``len(batch) * longest`` tokens.

    Args:
        lengths: tokens of each pair.
        budget: padded tokens that a batch may cost; one pair alone may cost more.

    Returns:
        Every position exactly once, in batches of rising length.
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Lengths rise, so this pair would be the longest of the batch that it joins.
        if batches and (len(batches[-1]) + 1) * lengths[position] <= budget:
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches
