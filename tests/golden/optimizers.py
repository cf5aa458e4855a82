"""Ten steps of each optimiser on fixed pseudo-gradients, in float64. README.md states the formulas of LARS and LAMB."""

import torch

import formula

STEPS = 10
SHAPES = {"first.weight": (4, 3), "second.weight": (3, 5), "second.bias": (5,)}


def learning_rate(base, step):
    """Halved after five steps, so that it matters where the rate enters the momentum."""
    return base if step <= 5 else base / 2


def initial():
    return {name: torch.from_numpy(formula.uniform("optimizer." + name, shape)).double() for name, shape in SHAPES.items()}


def gradient(name, step):
    return torch.from_numpy(formula.uniform(f"optimizer.{name}.gradient.{step}", SHAPES[name])).double()


def torch_steps(make, base):
    weights = {name: w.requires_grad_() for name, w in initial().items()}
    optimizer = make(list(weights.values()), base)
    history = {name: [] for name in weights}
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = learning_rate(base, step)
        for name, w in weights.items():
            w.grad = gradient(name, step)
        optimizer.step()
        for name, w in weights.items():
            history[name].append(w.detach().clone())
    return {name: torch.stack(steps) for name, steps in history.items()}


def lars(base, momentum, nesterov, weight_decay, eta, epsilon):
    """You et al. 2017, as the MLPerf ResNet-50 reference applies it (its "classic momentum")."""
    result = {}
    for name, w in initial().items():
        m = torch.zeros_like(w)
        steps = []
        for step in range(1, STEPS + 1):
            g, rate = gradient(name, step), learning_rate(base, step)
            if w.ndim > 1:
                w_norm, g_norm = w.norm(), g.norm()
                if w_norm > 0 and g_norm > 0:
                    rate = rate * eta * w_norm / (g_norm + weight_decay * w_norm + epsilon)
                g = g + weight_decay * w
            m = momentum * m + rate * g
            w = w - (momentum * m + rate * g if nesterov else m)
            steps.append(w)
        result[name] = torch.stack(steps)
    return result


def clipped_gradient(name, step, max_norm):
    """As torch.nn.utils.clip_grad_norm_ leaves the gradients of all; 0: as they are."""
    g = gradient(name, step)
    if max_norm == 0:
        return g
    parameters = {key: torch.nn.Parameter(w) for key, w in initial().items()}
    for key, parameter in parameters.items():
        parameter.grad = gradient(key, step)
    torch.nn.utils.clip_grad_norm_(parameters.values(), max_norm)
    return parameters[name].grad


def lamb(base, betas, epsilon, weight_decay, trust_without_decay, max_norm=0.0):
    """You et al. 2019, as Apex's FusedLAMB."""
    result = {}
    for name, w in initial().items():
        m, v = torch.zeros_like(w), torch.zeros_like(w)
        decay = weight_decay if w.ndim > 1 else 0.0
        steps = []
        for step in range(1, STEPS + 1):
            g, rate = clipped_gradient(name, step, max_norm), learning_rate(base, step)
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            update = (m / (1 - betas[0] ** step)) / ((v / (1 - betas[1] ** step)).sqrt() + epsilon) + decay * w
            trust = 1.0
            if (decay != 0 or trust_without_decay) and w.norm() > 0 and update.norm() > 0:
                trust = w.norm() / update.norm()
            w = w - rate * trust * update
            steps.append(w)
        result[name] = torch.stack(steps)
    return result


# Name -> (base learning rate, options); a name's first word is the algorithm.
CASES = {
    "sgd": (0.1, dict(momentum=0.0, nesterov=False, weight_decay=0.0)),
    "sgd_momentum": (0.1, dict(momentum=0.9, nesterov=False, weight_decay=0.01)),
    "sgd_nesterov": (0.1, dict(momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": (0.05, dict(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)),
    "adam_l2": (0.05, dict(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)),
    "adamw": (0.05, dict(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)),
    "adagrad": (0.05, dict(eps=1e-10, weight_decay=0.0)),
    "adagrad_l2": (0.05, dict(eps=1e-10, weight_decay=0.01)),
    "rmsprop": (0.01, dict(alpha=0.99, eps=1e-8, momentum=0.0, centered=False, weight_decay=0.0)),
    "rmsprop_momentum": (0.01, dict(alpha=0.9, eps=1e-8, momentum=0.9, centered=True, weight_decay=0.01)),
    "lars": (1.0, dict(momentum=0.9, nesterov=False, weight_decay=0.01, eta=0.1, epsilon=1e-9)),
    "lars_nesterov": (1.0, dict(momentum=0.9, nesterov=True, weight_decay=0.01, eta=0.1, epsilon=1e-9)),
    "lamb": (0.05, dict(betas=(0.9, 0.999), epsilon=1e-6, weight_decay=0.01, trust_without_decay=False)),
    "nvlamb": (0.05, dict(betas=(0.9, 0.999), epsilon=1e-6, weight_decay=0.01, trust_without_decay=True)),
    "nvlamb_clipped": (0.05, dict(betas=(0.9, 0.999), epsilon=1e-6, weight_decay=0.01, trust_without_decay=True, max_norm=1.0)),
}
TORCH = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}


def run(case):
    base, options = CASES[case]
    algorithm = case.split("_")[0]
    if algorithm == "lars":
        return lars(base, **options)
    if algorithm.endswith("lamb"):
        return lamb(base, **options)
    return torch_steps(lambda weights, rate: TORCH[algorithm](weights, lr=rate, **options), base)
