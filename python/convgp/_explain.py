"""Evidence for one image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Part:
    """What one response of one component contributes to the latent means of one image.

    Attributes
    ----------
    component : str
        Name of the component.
    response : int
        Index of the response within it: the channel, for multi-channel components.
    planes : list of str
        Names of the planes of views, such as those of an orbit; one empty name for plain patches.
    mean, sd : array of shape (planes, rows, columns, latents)
        Mean and standard deviation of every view's contribution. Views share one function, so that variances do not add.
    inducing : array of shape (inducing inputs, latents)
        The same evidence by inducing input.
    maps : array of shape (latents, planes, height, width)
        Contributions painted on the image; every map sums to its plane's share of the latent mean.
    """

    component: str
    response: int
    planes: list[str]
    mean: np.ndarray
    sd: np.ndarray
    inducing: np.ndarray
    maps: np.ndarray

    def __repr__(self) -> str:
        places = "x".join(str(side) for side in self.mean.shape[:3])
        return f"Part({self.component!r}, response={self.response}, {places} views)"


@dataclass(frozen=True)
class Explanation:
    """The latent means of one image as sums over its views."""

    parts: list[Part]

    def __repr__(self) -> str:
        means = np.array2string(self.latent_means, precision=3, threshold=10)
        return f"Explanation(latent_means={means}, parts={self.parts!r})"

    @property
    def latent_means(self) -> np.ndarray:
        """What the parts sum to."""
        return np.sum([part.mean.sum(axis=(0, 1, 2)) for part in self.parts], axis=0)

    def map(self, latent: int = 0) -> np.ndarray:
        """All contributions to one latent, painted on the image: (height, width)."""
        return np.sum([part.maps[latent].sum(axis=0) for part in self.parts], axis=0)


def explanations(found: list[list[dict[str, Any]]]) -> list[Explanation]:
    """From the native half's dictionaries."""
    return [Explanation([Part(**part) for part in parts]) for parts in found]
