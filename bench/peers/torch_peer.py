"""The same models by hand in PyTorch, as fast as we could make them: hand-written backward passes, half of the pairs.

One process, one configuration: `python torch_peer.py --config M1`, one JSON line. `--check` compares values and
gradients with plain autograd on small problems instead.

Patches in single precision, Kuu and its factor in double, q in single. Exponents come out of one matrix product each:
with a = [x / l, -|x|^2 / 2l^2, 1] and b = [z / l, 1, -|z|^2 / 2l^2], a . b = -|x - z|^2 / 2l^2.
"""
import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F

import settings

NODES, NODE_WEIGHTS = (torch.tensor(v) for v in np.polynomial.hermite.hermgauss(20))
TILE = 4 << 20  # numbers in one temporary
KEEP = 1 << 28  # numbers of Kuf's tiles that are kept for the backward pass
PAIR_ROWS = 144  # patches against all later ones at a time


def patches(images, config):
    """One (B, P, E) tensor per response function."""
    rows, cols, channels = config["shape"]
    planes = images.reshape(-1, rows, cols, channels).permute(0, 3, 1, 2)
    side = config["patch"]
    if config["colour"] == "through":
        return [F.unfold(planes, side).mT.contiguous()]
    single = [F.unfold(planes[:, c : c + 1], side).mT.contiguous() for c in range(channels)]
    return single if config["colour"] == "each" else [torch.cat(single, 1)]


def sides(x, ell):
    """Both factors of the exponent."""
    norm = -0.5 * x.square().sum(-1, keepdim=True) / ell**2
    one = torch.ones_like(norm)
    return torch.cat([x / ell, norm, one], -1), torch.cat([x / ell, one, norm], -1)


class Kuf(torch.autograd.Function):
    """(B, M): sum_p w_p exp(-|x_p - z_m|^2 / 2l^2).

    The forward pass also forms sum_p w_p k [x_p, |x_p|^2, 1], so that the backward pass needs the tiles for w only."""

    @staticmethod
    def forward(ctx, x, z, w, ell):
        (count, views, _), inducing = x.shape, len(z)
        left, right = sides(x, ell)[0], sides(z, ell)[1].T.contiguous()
        norms = x.square().sum(-1, keepdim=True)
        weighted = torch.cat([x, norms, torch.ones_like(norms)], -1) * w[:, None]
        moments = x.new_empty(count, inducing, weighted.shape[-1])
        size = max(1, TILE // (views * inducing))
        tiles = [] if count * views * inducing <= KEEP else None
        for i in range(0, count, size):
            tile = torch.matmul(left[i : i + size], right).exp_()
            torch.bmm(tile.mT, weighted[i : i + size], out=moments[i : i + size])
            if tiles is not None:
                tiles.append(tile)
        ctx.size, ctx.tiles = size, tiles
        ctx.save_for_backward(left, right, z, moments, ell)
        return moments[..., -1].clone()

    @staticmethod
    def backward(ctx, bar):
        left, right, z, moments, ell = ctx.saved_tensors
        w_bar = left.new_zeros(left.shape[1])
        for j, i in enumerate(range(0, len(left), ctx.size)):
            tile = ctx.tiles[j] if ctx.tiles else torch.matmul(left[i : i + ctx.size], right).exp_()
            w_bar += torch.bmm(tile, bar[i : i + ctx.size, :, None]).sum(0)[:, 0]
        ctx.tiles = None
        sums = torch.einsum("nm,nme->me", bar, moments)
        first, second, total = sums[:, :-2], sums[:, -2], sums[:, -1]
        z_bar = (first - total[:, None] * z) / ell**2
        distance = second - 2 * (first * z).sum(1) + total * z.square().sum(1)
        return None, z_bar, w_bar, distance.sum() / ell**3


class Kff(torch.autograd.Function):
    """(B,): sum_pq w_p w_q exp(-|x_p - x_q|^2 / 2l^2), with its derivatives from the same pass over half the pairs."""

    @staticmethod
    def forward(ctx, x, w, ell):
        count, views, elements = x.shape
        left, right = sides(x, ell)
        columns = torch.cat([x, torch.ones_like(x[..., :1])], -1) * w[:, None]
        sums = torch.zeros_like(columns)  # sum_q w_q k_pq [x_q, 1]
        size = max(1, TILE // (PAIR_ROWS * views))
        for i in range(0, count, size):
            here = slice(i, i + size)
            for p in range(0, views, PAIR_ROWS):
                end = min(p + PAIR_ROWS, views)
                tile = torch.matmul(left[here, p:end], right[here, p:].mT).exp_()
                sums[here, p:end] += torch.bmm(tile, columns[here, p:])
                if end < views:
                    sums[here, end:] += torch.bmm(tile[..., end - p :].mT, columns[here, p:end])
        rows = sums[..., -1]
        cross = (sums[..., :elements] * columns[..., :elements]).sum((1, 2))
        distance = 2 * (x.square().sum(-1) * w * rows).sum(1) - 2 * cross
        ctx.save_for_backward(rows, distance, ell)
        return (rows * w).sum(1)

    @staticmethod
    def backward(ctx, bar):
        rows, distance, ell = ctx.saved_tensors
        return None, 2 * (bar[:, None] * rows).sum(0), (bar * distance).sum() / ell**3


def kuf_plain(x, z, w, ell):
    return torch.einsum("npm,p->nm", torch.exp(-0.5 * torch.cdist(x, z[None]).square() / ell**2), w)


def kff_plain(x, w, ell):
    d = (x[:, :, None] - x[:, None]).square().sum(-1)
    return torch.einsum("npq,p,q->n", torch.exp(-0.5 * d / ell**2), w, w)


class Model(torch.nn.Module):
    def __init__(self, config, z, ell, single=torch.float32, plain=False):
        super().__init__()
        self.config, self.single, self.jitter = config, single, 1e-6
        self.kuf, self.kff = (kuf_plain, kff_plain) if plain else (Kuf.apply, Kff.apply)
        self.responses = config["shape"][2] if config["colour"] == "each" else 1
        inverse_softplus = lambda v: torch.tensor(math.log(math.expm1(v)), dtype=torch.float64)
        self.free_variance = torch.nn.Parameter(inverse_softplus(1.0))
        self.free_ell = torch.nn.Parameter(inverse_softplus(ell))
        self.z = torch.nn.Parameter(torch.tensor(z, dtype=torch.float64))
        if config["patch"]:
            rows, cols, channels = config["shape"]
            views = (rows - config["patch"] + 1) * (cols - config["patch"] + 1)
            views *= channels if config["colour"] == "pooled" else 1
            self.w = torch.nn.Parameter(torch.full((self.responses, views), 1 / views, dtype=single))
        q = (self.responses, settings.latents(config), len(z))
        self.mean = torch.nn.Parameter(torch.zeros(q, dtype=single))
        self.factor = torch.nn.Parameter(torch.eye(len(z), dtype=single).repeat(*q[:2], 1, 1))

    def covariances(self, images, variance, ell):
        if self.config["patch"] is None:
            x = images.double()
            d = self.z.square().sum(1, keepdim=True) + x.square().sum(1) - 2 * self.z @ x.T
            return variance * torch.exp(-0.5 * d.clamp_min(0) / ell**2), variance.expand(len(images))
        kufs, kff = [], 0.0
        for r, x in enumerate(patches(images.to(self.single), self.config)):
            z, l, w = self.z.to(self.single), ell.to(self.single), self.w[r]
            kufs.append(variance * self.kuf(x, z, w, l).double().T)
            kff = kff + variance * self.kff(x, w, l).double()
        return torch.cat(kufs, 1), kff

    def marginals(self, images):
        variance, ell = F.softplus(self.free_variance), F.softplus(self.free_ell)
        squares = self.z.square().sum(1)
        d = (squares[:, None] + squares - 2 * self.z @ self.z.T).clamp_min(0)
        kuu = variance * torch.exp(-0.5 * d / ell**2) + self.jitter * torch.eye(len(d), dtype=d.dtype)
        kuf, kff = self.covariances(images, variance, ell)
        a = torch.linalg.solve_triangular(torch.linalg.cholesky(kuu), kuf, upper=False)
        a = a.reshape(len(d), self.responses, -1).transpose(0, 1)
        rest = kff - a.square().sum((0, 1))
        a = a.to(self.mean.dtype)
        spread = (self.factor.tril().mT @ a[:, None]).square().sum((0, 2))
        return (self.mean @ a).sum(0).T.double(), rest[:, None] + spread.T.double()

    def largest(self, k, mean, var):
        """Probability that latent k is the largest."""
        here = torch.arange(len(mean))
        var = var.clamp_min(1e-10)
        nodes = mean[here, k][:, None] + (2 * var[here, k]).sqrt()[:, None] * NODES
        below = torch.special.ndtr((nodes[:, None] - mean[..., None]) / var.sqrt()[..., None]) * (1 - 2e-6) + 1e-6
        below = below.masked_fill(F.one_hot(k, mean.shape[1]).bool()[..., None], 1.0)
        return (below.prod(1) * NODE_WEIGHTS).sum(1) / math.sqrt(math.pi)

    def loss(self, images, labels):
        mean, var = self.marginals(images)
        if mean.shape[1] == 1:
            nodes = mean + (2 * var).clamp_min(1e-10).sqrt() * NODES
            logs = torch.special.log_ndtr((2.0 * labels - 1)[:, None] * nodes)
            expectation = (logs * NODE_WEIGHTS).sum() / math.sqrt(math.pi)
        else:
            p = self.largest(labels, mean, var)
            expectation = (p * math.log(1 - 1e-3) + (1 - p) * math.log(1e-3 / (mean.shape[1] - 1))).sum()
        factor = self.factor.tril()
        logs = factor.diagonal(dim1=-2, dim2=-1).abs().log().sum()
        kl = 0.5 * (factor.square().sum() + self.mean.square().sum() - self.mean.numel()) - logs
        return kl.double() - self.config["N"] / len(images) * expectation

    @torch.no_grad()
    def probabilities(self, images):
        mean, var = self.marginals(images)
        if mean.shape[1] == 1:
            return torch.special.ndtr(mean / (1 + var).sqrt())
        k = mean.shape[1]
        p = torch.stack([self.largest(torch.full((len(mean),), c), mean, var) for c in range(k)], 1)
        return p * (1 - 1e-3) + (1 - p) * 1e-3 / (k - 1)


def check():
    """Hand-written against plain autograd, in double precision."""
    for name in ("R", "M1s", "C1cp", "CMC"):
        config = dict(settings.CONFIGS[name], M=9, shape=(11, 10, settings.CONFIGS[name]["shape"][2]))
        rng = np.random.default_rng(3)
        images = torch.tensor(rng.uniform(size=(5, math.prod(config["shape"]))))
        labels = torch.tensor(rng.integers(0, config["classes"], 5))
        z = rng.uniform(size=(9, config["patch"] ** 2 * (3 if config["colour"] == "through" else 1)))
        results = []
        for plain in (False, True):
            model = Model(config, z, 0.8, torch.float64, plain)
            torch.manual_seed(0)
            with torch.no_grad():
                for p in (model.w, model.mean, model.factor):
                    p += 0.1 * torch.randn_like(p)
            loss = model.loss(images, labels)
            results.append([loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))])
        # The variance's derivative nearly cancels with robust-max: small against the others is small enough.
        floor = 1e-4 * max(float(b.abs().max()) for b in results[1])
        worst = max(float((a - b).abs().max()) / max(float(b.abs().max()), floor) for a, b in zip(*results))
        print(f"{name}: largest relative difference {worst:.1e}")
        assert worst < 1e-9, name


def main():
    torch.set_num_threads(settings.os.cpu_count())
    parser = settings.arguments(argparse.ArgumentParser())
    options = parser.parse_args()
    config = settings.CONFIGS[options.config]
    pixels, labels = settings.load(config, options.data)
    model = Model(config, settings.inducing(config, pixels), settings.LENGTHSCALE.get(options.config, 1.0))
    images, labels = torch.tensor(pixels, dtype=torch.float32), torch.tensor(labels)
    adam = torch.optim.Adam(model.parameters(), lr=settings.LEARNING_RATE, fused=True)

    def step(i):
        size = config["B"]
        start = i * size % (len(images) - size)
        adam.zero_grad(set_to_none=True)
        loss = model.loss(images[start : start + size], labels[start : start + size])
        loss.backward()
        adam.step()
        if not math.isfinite(float(loss.detach())):
            raise SystemExit("the loss is not finite")

    def predict():
        for start in range(0, settings.PREDICT, settings.PREDICT_BATCH):
            model.probabilities(images[start : start + settings.PREDICT_BATCH])

    settings.measure(step, predict, options, f"PyTorch {torch.__version__}")


if __name__ == "__main__":
    import sys

    check() if "--check" in sys.argv else main()
