from _typeshed import Incomplete
from collections.abc import Sequence
from os import PathLike
from typing import Any, Final, final

__version__: Final[str]
"""
Version of the package.
"""

@final
class Data:
    """
    Images with or without targets. Holds on to the arrays it was made from: they must not be written to while work on
    them goes on.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, pixels: Any, shape: tuple[int, int, int], *, labels: Incomplete | None = None, class_names: Sequence[str] | None = None, values: Incomplete | None = None) -> Data:
        """
        `pixels` is a contiguous array of uint8, uint16, float32 or float64 that holds one image after the other; it is not copied.
        Targets are `labels`, numbers into `class_names`, or real `values`.
        """
    def first(self, /, count: int) -> Data:
        """
        The first `count` images, without targets.
        """
    @property
    def shape(self, /) -> tuple[int, int, int]:
        """
        Height, width and channels.
        """

@final
class Model:
    """
    A model with its parameters: what a model file holds, and how it is trained.
    """
    def __repr__(self, /) -> str: ...
    @property
    def answer_rule(self, /) -> dict | None:
        """
        When it answers: risk, number of images the threshold was set on, threshold, coverage, error, upper_error.
        """
    def calibrate(self, /, data: Data, risk: float, *, threads: int | None = None) -> None:
        """
        Sets the threshold from which on it answers, on images that were not trained on.
        """
    def check_scale(self, /, data: Data) -> str | None:
        """
        Refuses images whose pixels cannot be on the scale of those it was trained on; says what is converted.
        """
    @property
    def class_names(self, /) -> list[str]:
        """
        One name per class; none for regression.
        """
    def classes(self, /, data: Data, *, threads: int | None = None) -> Incomplete:
        """
        The most probable class of every image, as a number.
        """
    def components(self, /) -> list[dict]:
        """
        Every component: name, inducing inputs as pictures (`M x height x width x channels`), and the weights of its views
        (`responses x planes x rows x columns`).
        """
    def covariances(self, /, data: Data, *, threads: int | None = None) -> list[tuple[Incomplete, list[Incomplete], list[Incomplete]]]:
        """
        Covariances of every component: `(Kuu, [Kuf per response], [kff per response])`, without jitter.
        """
    @staticmethod
    def create(data: Data, *, name: str | None = None, spec: str | None = None, toml: str | None = None, recipe: str = "fast", inducing: int | None = None, patch: tuple[int, int] | None = None, batch_size: int | None = None, steps: int | None = None, seconds: float | None = None, seed: int = 0, threads: int | None = None) -> Model:
        """
        A model for the data, with its initial parameters: by `name`, by `spec` (JSON), by `toml` (its text), or chosen from
        the data. Everything else overrides what these say.
        """
    def describe(self, /) -> str:
        """
        One line about it.
        """
    def elbo(self, /, data: Data, count: int | None = None, *, draw: int = 0, threads: int | None = None) -> tuple[float, float, float]:
        """
        The bound on a minibatch of `count` images (its own number if `None`), its expectation term and its divergence. `draw`
        numbers the evaluation for likelihoods that sample.
        """
    def explain(self, /, data: Data, *, threads: int | None = None) -> list[list[dict]]:
        """
        What every view of every image contributes to the latent means: for every image a list of dictionaries, one per
        component and response.
        """
    def fit(self, /, data: Data, held_out: Data | None = None, *, steps: int | None = None, seconds: float | None = None, evaluate_every: int | None = None, keep_statistics: bool = False, threads: int | None = None, on_row: Any | None = None, on_tick: Any | None = None) -> None:
        """
        Trains for `steps` or `seconds` (or as long as its own settings say); models for the closed-form solver are solved. `on_row` is
        called with a dictionary after every evaluation, `on_tick` with steps taken, steps planned and the bound many times a second; training
        ends when either returns true. What they raise, and Ctrl-C, ends it too: the model is then the one of the last step.
        With `keep_statistics`, a model that is solved can be updated.
        """
    @property
    def form(self, /) -> str:
        """
        How q is written: "covariance" (means and factors, what files hold) or "natural" (what natural steps need).
        """
    @form.setter
    def form(self, /, form: str) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model:
        """
        Reads the bytes of a model file.
        """
    def gradients(self, /, data: Data, count: int | None = None, *, draw: int = 0, threads: int | None = None) -> tuple[tuple[float, float, float], dict]:
        """
        The same, and the bound's derivatives in every parameter by name. In natural form those of q are left out.
        """
    @property
    def has_statistics(self, /) -> bool:
        """
        Whether it can be updated.
        """
    @property
    def image_shape(self, /) -> tuple[int, int, int]:
        """
        Height, width and channels of its images.
        """
    @property
    def is_closed_form(self, /) -> bool:
        """
        Whether it is solved in closed form rather than trained in steps.
        """
    def is_trainable(self, /, name: str) -> bool:
        """
        Whether training may move a parameter.
        """
    def latent_marginals(self, /, data: Data, *, threads: int | None = None) -> tuple[Incomplete, Incomplete]:
        """
        Means and variances of the latent functions, `images x latents` each.
        """
    @property
    def latents(self, /) -> int:
        """
        Number of latent functions.
        """
    @staticmethod
    def load(path: str | PathLike[str]) -> Model:
        """
        Reads a model file.
        """
    def mean_and_variance(self, /, data: Data, *, threads: int | None = None) -> tuple[Incomplete, Incomplete]:
        """
        Mean and variance of a real target, one per image.
        """
    def nlpp(self, /, data: Data, *, threads: int | None = None) -> float:
        """
        Mean of `-log p(y | x)` over images with targets.
        """
    def parameter(self, /, name: str) -> Incomplete:
        """
        A parameter as an array.
        """
    def parameter_names(self, /) -> list[str]:
        """
        Names of its parameters, in their order.
        """
    @property
    def pixel_scale(self, /) -> str:
        """
        Units of the pixels it was trained on, in words.
        """
    def probabilities(self, /, data: Data, *, threads: int | None = None) -> Incomplete:
        """
        Class probabilities, `images x classes`.
        """
    @property
    def reasons(self, /) -> list[str]:
        """
        What was chosen, and why.
        """
    def sample(self, /, data: Data, draws: int, seed: int, *, threads: int | None = None) -> Incomplete:
        """
        Joint draws of the latent functions at the images, `draws x images x latents`.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Writes a model file; one that is there is replaced as a whole.
        """
    def set_parameter(self, /, name: str, numbers: Incomplete) -> None:
        """
        Replaces a parameter's numbers.
        """
    def set_statistics(self, /, bytes: bytes) -> None:
        """
        Takes statistics back from such bytes.
        """
    def set_train(self, /, settings: str) -> None:
        """
        Replaces the settings of its training, given as JSON.
        """
    def set_trainable(self, /, name: str, trainable: bool) -> None:
        """
        Freezes or frees every parameter whose name is `name` or begins with `name.`.
        """
    def shares(self, /, data: Data, *, threads: int | None = None) -> list[tuple[str, int, float, float]]:
        """
        How much of the function each response of each component is, over the images.
        """
    @property
    def spec(self, /) -> str:
        """
        Its structure and its training, as JSON.
        """
    def statistics_to_bytes(self, /) -> bytes | None:
        """
        The bytes of a statistics file.
        """
    def to_bytes(self, /) -> bytes:
        """
        The bytes of a model file.
        """
    def update(self, /, data: Data, *, remove: bool = False, threads: int | None = None) -> bool:
        """
        Adds images, or removes them; after an error nothing has changed. Returns whether an answer rule was lost.
        """
    @property
    def values(self, /) -> Incomplete:
        """
        All parameters as one vector.
        """

@final
class Report:
    """
    What was learned, to look at.
    """
    def __new__(cls, /, model: Model, title: str, facts: Sequence[tuple[str, str]], history: Sequence[tuple[int, float, float | None, float | None, float | None, float | None]], held_out: Data | None = None, *, threads: int | None = None) -> Report:
        """
        About a model, how its training went, and what it says about images with targets.
        """
    def html(self, /) -> str:
        """
        The page: one file, nothing to fetch.
        """
    def pngs(self, /) -> list[tuple[str, bytes]]:
        """
        Every figure: its name and its PNG file.
        """
    def write(self, /, folder: str | PathLike[str]) -> None:
        """
        Writes `report.html` and the folder `figures` into a folder, which is made if it is not there.
        """

@final
class Stepper:
    """
    Takes single steps on minibatches of one's choice; remembers Adam's moments.
    """
    def __new__(cls, /, model: Model, q: str = "natural", settings: str | None = None) -> Stepper:
        """
        For a model. With `q` "natural", natural steps move the posterior and Adam everything else; with "adam", Adam moves all.
        Puts the model's q into the form that needs. `settings` are those of training, as JSON (the model's own if `None`).
        """
    def step(self, /, model: Model, data: Data, count: int | None = None, *, rate: float | None = None, gamma: float | None = None, threads: int | None = None) -> tuple[float, float, float]:
        """
        One step on a minibatch of `count` images: one evaluation, then a natural step of size `gamma` and an Adam step of size `rate`.
        A size of 0 leaves that step out; `None` is the size in the settings. Returns the bound, or the energy that the settings name, before the step. Where it cannot be
        computed, the parameters go back to those of the step before and the moments are forgotten.
        """
    @property
    def taken(self, /) -> int:
        """
        Steps taken.
        """

def model_names() -> list[tuple[str, str]]:
    """
    Names of the models that can be asked for, with a line about each.
    """

def paper_names() -> list[str]:
    """
    Names of the paper's experiments.
    """

def read(path: str | PathLike[str], *, size: tuple[int, int] | None = None, channels: int | None = None, limit: int | None = None) -> list[tuple[str, tuple[Any, Any, list[str]]]]:
    """
    Reads a file or folder as the command line does: for every split its name and its arrays.
    """

def rectangles(count: int, seed: int) -> tuple[Any, Any, list[str]]:
    """
    Outlines of rectangles, wide or tall: images, labels, class names.
    """

def __getattr__(name: str) -> Incomplete: ...
