"""Whom convgp meets in little_data.py: a support-vector machine, a small network, and a network that gets its best shot.

Each takes training images in [0, 1], a row of numbers per image, their labels and the test images, and returns class
probabilities of the test images, the time (`ours.clock`) of the whole of training, choosing included, and what it chose.
"""
import math

import numpy as np
import scipy.optimize
import scipy.special
import torch
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC
from torch import nn

import ours

CLASSES = 10
FOLDS = 5
PENALTIES = [1.0, 10.0, 100.0]
UPDATES, UPDATES_TUNED, BATCH = 2000, 3000, 64  # of the networks


def temperature(scores, labels, images=math.inf):
    """The factor on scores whose softmax has the best log likelihood, and that likelihood's negative mean.

    With few `images` to go by, the logarithm of the factor is held to 0 by a standard normal prior.
    """

    def loss(log_factor):
        log_p = scipy.special.log_softmax(np.exp(log_factor) * scores, axis=1)
        return -log_p[np.arange(len(labels)), labels].mean() + 0.5 * log_factor**2 / images

    best = scipy.optimize.minimize_scalar(loss, bounds=(-5, 5), method="bounded")
    return np.exp(best.x), best.fun


def svm(train, labels, test, **_):
    """RBF kernel of scikit-learn's default width; penalty and temperature by cross-validation."""

    def machine(penalty):
        return SVC(C=penalty, gamma="scale", decision_function_shape="ovr")

    def out_of_fold(penalty):
        scores = np.empty((len(labels), CLASSES))
        for inside, outside in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(train, labels):
            fitted = machine(penalty).fit(train[inside], labels[inside])
            scores[outside] = fitted.decision_function(train[outside])
        return temperature(scores, labels)

    start = ours.clock()
    chosen = {penalty: out_of_fold(penalty) for penalty in PENALTIES}
    penalty = min(chosen, key=lambda p: chosen[p][1])
    fitted = machine(penalty).fit(train, labels)
    seconds = ours.clock() - start
    scores = chosen[penalty][0] * fitted.decision_function(test)
    return scipy.special.softmax(scores, axis=1), seconds, dict(penalty=penalty)


def planes(images, shape):
    """Images as PyTorch takes them."""
    return torch.tensor(images, dtype=torch.float32).reshape(-1, *shape).permute(0, 3, 1, 2).contiguous()


def fit(layers, images, labels, optimiser, schedule, updates, changed=lambda batch: batch, half=False, smoothing=0.0):
    """So many updates on minibatches, walking through shuffled images; `half`: layers compute in bfloat16."""
    layers.train()
    targets, order = torch.tensor(labels), torch.empty(0, dtype=torch.long)
    for _ in range(updates):
        if len(order) < min(BATCH, len(images)):
            order = torch.randperm(len(images))
        batch, order = order[:BATCH], order[BATCH:]
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            scores = layers(changed(images[batch]))
        loss = nn.functional.cross_entropy(scores.float(), targets[batch], label_smoothing=smoothing)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def answers(layers, images):
    """Logits."""
    layers.eval()
    with torch.no_grad():
        return torch.cat([layers(part) for part in images.split(500)]).double().numpy()


def network(train, labels, test, shape, seed, updates=UPDATES, **_):
    """Two convolutions and two dense layers with dropout, Adam with a cosine schedule."""
    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Conv2d(shape[2], 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(64 * (shape[0] // 4) ** 2, 128), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(128, CLASSES),
    )
    images = planes(train, shape)
    optimiser = torch.optim.Adam(layers.parameters(), lr=1e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    start = ours.clock()
    fit(layers, images, labels, optimiser, schedule, updates)
    seconds = ours.clock() - start
    probabilities = scipy.special.softmax(answers(layers, planes(test, shape)), axis=1)
    return probabilities, seconds, dict(updates=updates, threads=torch.get_num_threads())


TURN, SCALE, SHIFT = math.radians(12), 0.1, 2.0  # of copies at most: angle, factor on the size, pixels
RATE, DECAY, SMOOTHING = 3e-3, 0.05, 0.1  # step size, decay of weights, smoothing of labels


def moved(images, mirror):
    """Each image turned, scaled and shifted by a little; with `mirror`, every other one mirrored."""
    count, side = len(images), images.shape[2]
    uniform = lambda most, *size: most * (2 * torch.rand(count, *size) - 1)
    angle, scale, shift = uniform(TURN), 1 + uniform(SCALE), uniform(2 * SHIFT / side, 2)
    side_swap = 1.0 - 2.0 * torch.randint(2, (count,)) * mirror
    across, along = scale * angle.cos(), scale * angle.sin()
    rows = [across * side_swap, -along, shift[:, 0], along * side_swap, across, shift[:, 1]]
    grid = nn.functional.affine_grid(torch.stack(rows, 1).reshape(-1, 2, 3), images.shape, align_corners=False)
    return nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def convolution(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def network_tuned(train, labels, test, shape, seed, updates=UPDATES_TUNED, **_):
    """Five convolutions with batch norm and dropout; images moved by a little, labels smoothed, AdamW, a cosine schedule.

    A tenth of the images is held out for the temperature. Angles, smoothing and so on were not searched for: only
    smoothing was compared with none, on 300 digits and --held-out images.
    """
    torch.manual_seed(seed)
    side, _, channels = shape
    mirror = channels == 3
    layers = nn.Sequential(
        *convolution(channels, 32), nn.MaxPool2d(2),
        *convolution(32, 64), *convolution(64, 64), nn.MaxPool2d(2), nn.Dropout(0.1),
        *convolution(64, 128), *convolution(128, 128), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(128 * (side // 8) ** 2, CLASSES),
    )
    layers = layers.to(memory_format=torch.channels_last)  # this and bfloat16 make it four times as fast
    kept, held_out = train_test_split(np.arange(len(labels)), test_size=0.1, stratify=labels, random_state=seed)
    images = planes(train, shape).to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(layers.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, updates, pct_start=0.1)
    start = ours.clock()
    copies = lambda batch: moved(batch, mirror)
    fit(layers, images[kept], labels[kept], optimiser, schedule, updates, copies, half=True, smoothing=SMOOTHING)
    factor, _ = temperature(answers(layers, images[held_out]), labels[held_out], len(held_out))
    seconds = ours.clock() - start
    probabilities = scipy.special.softmax(factor * answers(layers, planes(test, shape)), axis=1)
    return probabilities, seconds, dict(updates=updates, threads=torch.get_num_threads(), factor=factor)
