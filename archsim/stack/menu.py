"""The kernels that a matrix library chooses from: tiles of its products, and how it cuts their inner dimension."""

from dataclasses import dataclass
from math import inf

from archsim.stack.key import key


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One kernel variant of a matrix library: the block of the result that a CTA computes, and what it occupies.

    The library takes it for results of `least_m` x `least_n` to `most_m` x `most_n`, of `least_k` to `most_k` terms.
    """

    m: int = key("rows of the result that a CTA computes", low=1)
    n: int = key("columns of the result that a CTA computes", low=1)
    k: int = key("depth of one step of the inner loop", low=1)
    threads: int = key("threads of a CTA", low=1)
    registers: int = key("registers of a thread", low=1)
    shared: int = key("shared memory of a CTA [B]", low=0)
    least_m: int = key("fewest rows of a result that it is taken for", low=1, default=1)
    least_n: int = key("fewest columns of a result that it is taken for", low=1, default=1)
    least_k: int = key("fewest terms of a result that it is taken for", low=1, default=1)
    most_m: float = key("most rows of a result that it is taken for", low=1, default=inf)
    most_n: float = key("most columns of a result that it is taken for", low=1, default=inf)
    most_k: float = key("most terms of a result that it is taken for", low=1, default=inf)
    whole: bool = key("its CTAs go through all terms: it has no split", default=False)
    cluster: int = key("CTAs that load the longer side of their tiles together", low=1, default=1)
    score_slots: float = key("issue slots of a lane for each score of a softmax between two products", low=0, default=4.0)
    warp_mma: bool = key("warps multiply one by one on tensor cores that have instructions for groups of warps", default=False)
    overlapped: bool = key("one group of warps takes exponentials while another multiplies", default=False)
    persistent: bool = key("a CTA goes on with the next tile, whose loads are under way when it ends one", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The variants that a library can choose from for one kind of product, and how far it splits the inner dimension."""

    tiles: tuple[Tile, ...] = key("the variants", some=True)
    split_k: tuple[int, ...] = key("into how many parts the library can cut the inner dimension", low=1, default=(1,))
    split_least_k: int = key("shortest part of the inner dimension", low=1, default=1)
    split_wide: int = key("most parts for products that are wide in both directions; 0: any number", low=0, default=0)
    split_wide_least: int = key("shortest part of products that are wide in both directions; 0: as of others", low=0, default=0)
    split_wide_side: int = key("rows and columns beyond which a product is wide in that direction", low=0, default=0)
    split_wide_part: float = key(
        "shortest part of the inner dimension of which wide products are cut into more; none: never", low=1, default=inf
    )
    architectures: tuple[str, ...] = key("architectures on which NAME.x takes the place of NAME", default=())
    in_rows: bool = key("CTAs follow each other along the columns, a row of tiles after the other, not in square patches",
                        default=False)  # fmt: skip
    thin: int = key("fewest rows and columns that its tiles compute; fewer take a matrix-vector kernel", low=1, default=9)
    split_serial: bool = key("parts of a split add up one after the other, in the kernel itself", default=False)
    split_launches: int = key("kernels where it splits: 2 if a second one adds up the parts", low=1, default=1)
    fill: int = key(
        "tiles of each product of a batch, however many these are, of which it has at least so many, or as many as it can", low=1,
        default=1,
    )  # fmt: skip
