"""How a stack's usual loader prepares the samples of a batch."""

from dataclasses import dataclass

from archsim.stack.key import key


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReader:
    """How the stack's usual loader prepares the samples of a batch, where `inputs` are decoded."""

    stored: str = key("how a sample is stored: a JPEG image, or an array of bytes", choices=("jpeg", "array"), default="jpeg")
    pixels: int = key("pixels of a stored image; 0: as many as the network's input has", low=0, default=0)
    workers: int = key("threads of the host that decode", low=1, default=1)
    passes: int = key("loops over a sample's values after it is decoded: to floats, mirrored, less the mean", low=1, default=1)
    calls: int = key("calls of the framework for each sample, all dispatched by one thread", low=0, default=0)
    kernels: int = key("kernels that the device runs for each sample", low=0, default=0)
    copies: int = key("copies over the link for each sample, before it is in a batch", low=0, default=0)
    ahead: str = key(
        "what is ready when a step begins, made while the step before ran: nothing, the samples in the host's memory, or the "
        "batch in the device's", choices=("nothing", "samples", "batch"), default="samples",
    )  # fmt: skip

    @property
    def words(self) -> str:
        """How samples are decoded, as a reader says it.

        >>> SampleReader(workers=4, pixels=140_000, calls=9).words
        'JPEG images of 140,000 pixels, decoded by 4 threads of the host beside the step, with 9 calls of the framework for each'
        """
        size = f" of {self.pixels:,} pixels" if self.pixels else ""
        what = f"JPEG images{size}" if self.stored == "jpeg" else "arrays of bytes"
        counted = ((self.calls, "calls of the framework"), (self.kernels, "kernels"), (self.copies, "copies over the link"))
        extra = " and ".join(f"{count} {name}" for count, name in counted if count)
        threads = f"{self.workers} thread{'s' * (self.workers > 1)} of the host"
        when = {"nothing": "before each step", "samples": "beside the step", "batch": "and copied beside the step"}[self.ahead]
        return f"{what}, decoded by {threads} {when}" + (f", with {extra} for each" if extra else "")
