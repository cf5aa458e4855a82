"""The list of cases."""

import dataclasses
import fnmatch

TORCH = ("torch-eager", "torch-compile")
INFERENCE = TORCH + ("onnxruntime",)
RESIDENT = "resident"  # ours without a loader
PIPELINES = ("torchvision", "dali")  # that make batches of photographs
GPU_PIPELINES = ("torchvision-gpu", "torchvision", "dali")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    kind: str  # throughput, compile, startup or size
    device: str = "cpu"
    model: str = ""
    batch: int = 0
    train: bool = False
    precision: str = "fp32"
    image_size: int = 0  # pixels; 0: the network's own
    batches: int = 1  # that training takes in turn
    learning_rate: float = 1e-4
    deterministic: bool = True  # of Tessera; PyTorch's kernels on a GPU are not unless it is asked
    loader: int = 0  # threads of Tessera's loader, from which each step takes a batch of its own; 0: images lie on the device
    files: bool = False  # the loader's images are photographs that the GPU decodes
    recompute: bool = False  # Tessera recomputes activations instead of keeping them, wherever it can
    onnx: bool = False  # Tessera too reads the network from the file that ONNX Runtime has (onnx_files.py)
    package: str = ""  # the file is one of bench/.venv's packages, by its path there; "": PyTorch writes it
    sizes: tuple = ()  # (name, extent) pairs of what its shapes leave open, beside the batch
    below: int = 2  # what whole numbers that it reads are below, where outputs are compared
    photographs: bool = False  # batches of files, no network: decode, random-resized crop, mirror, normalize
    recipe: str = ""  # of bench/networks, in place of a model; its rows are synthetic tokens (token_shards.py)
    tokens: int = 0  # of a row
    vocabulary: int = 0
    parallel: bool = False  # rows have a translation beside them
    packed: int = 0  # texts of all lengths, so many of them in a row of ours and one in a row of the peer's; 0: rows are full
    unpadded: bool = False  # of packed texts: ours stand in one list
    counted: str = ""  # the measure of ours whose weight is how many samples a batch has; "": its rows
    attention_dropout: float = 0.0  # share of attention's weights that is dropped
    threads: int = 0  # that the case is about; 0: those of all
    peers: tuple = ()
    goals: tuple = ()  # (peer, ratio wanted) pairs; "torch" stands for the faster of eager and compiled
    allowed: float = 0.0  # for compile (s), startup (ms) and size (bytes)
    summary: str = ""


def throughput(model, batch, train, device="cpu", precision="fp32", deterministic=None, recompute=False, **goals):
    work = "train" if train else "infer"
    # ONNX Runtime is a peer on the CPU only.
    peers = TORCH if train or device != "cpu" else INFERENCE
    suffix = ("-deterministic" if deterministic else "") + ("-recompute" if recompute else "")
    if deterministic is None:
        deterministic = not (train and device == "cuda")
    return Case(
        name=f"{device}/{model}-{work}-b{batch}-{precision}{suffix}",
        kind="throughput",
        device=device,
        model=model,
        batch=batch,
        train=train,
        precision=precision,
        deterministic=deterministic,
        recompute=recompute,
        peers=peers,
        goals=tuple(goals.items()),
        summary=f"{model}, {'training step' if train else 'inference'}, batch {batch}, {precision}, samples/s",
    )


def loaded(model, batch, device, precision):
    """A training step fed by a loader, beside the same with images that lie on the device."""
    return dataclasses.replace(
        throughput(model, batch, True, device, precision),
        name=f"{device}/{model}-train-b{batch}-{precision}-loader",
        loader=2,
        peers=(RESIDENT,),
        goals=((RESIDENT, 0.98),),
        summary=f"{model}, training step fed with bytes by a loader, batch {batch}, {precision}, samples/s",
    )


def loaded_from_files(model, batch, device, precision):
    """The same fed with photographs, which the GPU decodes."""
    return dataclasses.replace(
        loaded(model, batch, device, precision),
        name=f"{device}/{model}-train-b{batch}-{precision}-jpeg",
        loader=16,
        files=True,
        goals=((RESIDENT, 0.97),),
        summary=f"{model}, training step fed with JPEG files that the GPU decodes, batch {batch}, {precision}, samples/s",
    )


def from_file(model, batch, package="", what="", device="cpu", precision="fp32", below=2, beside=(), **sizes):
    """A network in the ONNX format: one of models.py, which PyTorch writes, or a file that a package carries.

    On a CPU beside ONNX Runtime; on a GPU, where that of the packages has none, beside what PyTorch compiles of the model. And beside
    others by name, of those that run models.py.
    """
    peer, wanted = ("onnxruntime", 1.0) if device == "cpu" else ("torch-compile", 1.2)
    return dataclasses.replace(
        throughput(model, batch, False, device, precision, **{peer: wanted}, **({"torch": 1.05} if beside else {})),
        name=f"{device}/onnx-{model}-b{batch}-{precision}",
        onnx=True,
        package=package,
        sizes=tuple(sizes.items()),
        below=below,
        peers=(*beside, peer),
        summary=f"{model}{what and f' ({what})'} from a file in the ONNX format, inference, batch {batch}, {precision}, samples/s",
    )


def language(name, recipe, batch, tokens, vocabulary, precision, parallel=False, **goals):
    """A training step of a network of text, whose rows are full."""
    return dataclasses.replace(
        throughput(recipe, batch, True, "cuda", precision, **goals),
        name=f"cuda/{name}-{precision}",
        model="",
        recipe=recipe,
        tokens=tokens,
        vocabulary=vocabulary,
        parallel=parallel,
        summary=f"{recipe}, training step, batch {batch} of {tokens} tokens, {precision}, rows/s",
    )


def dropped_language(name, recipe, batch, tokens, vocabulary, precision, attention_dropout, **goals):
    """The same as published: with dropout of attention's weights."""
    plain = language(f"{name}-dropout", recipe, batch, tokens, vocabulary, precision, **goals)
    return dataclasses.replace(
        plain, attention_dropout=attention_dropout, summary=f"{plain.summary}, {attention_dropout:.0%} of attention's weights dropped")


def packed_language(name, recipe, batch, tokens, vocabulary, precision, packed, counted, unpadded=False, **goals):
    """The same of texts whose lengths fill half of the peer's rows; samples are texts, of which packed rows hold more or fewer: each
    step takes rows of its own."""
    return dataclasses.replace(
        language(name, recipe, batch, tokens, vocabulary, precision, **goals),
        packed=packed,
        unpadded=unpadded,
        loader=2,
        counted=counted,
        summary=f"{recipe}, training step, batch {batch} of {tokens} tokens, half of which are padding in the peer's, {precision}, texts/s",
    )


OCR = "rapidocr_onnxruntime/models/ch_PP-OCRv4_"
PIXELS = "p2o.DynamicDimension."
FILES = (
    *(from_file(model, batch) for model in ("resnet50", "resnet18", "mobilenet_v2", "efficientnet_b0") for batch in (1, 8)),
    *(from_file("bert_base", batch, what="128 tokens", beside=TORCH) for batch in (1, 8)),
    from_file("minilm_l6", 1, what="128 tokens"),
    from_file("magika", 1, "magika/models/standard_v3_3/model.onnx", "kinds of files", below=256),
    from_file("basic_pitch", 1, "basic_pitch/saved_models/icassp_2022/nmp.onnx", "notes of 2 s of sound"),
    from_file("ocr_detection", 1, f"{OCR}det_infer.onnx", "text in 640 x 640 pixels", **{f"{PIXELS}1": 640, f"{PIXELS}2": 640}),
    from_file("ocr_recognition", 1, f"{OCR}rec_infer.onnx", "a line of 48 x 320 pixels", **{"?": 48, f"{PIXELS}1": 320}),
    from_file("silero_vad", 1, "silero_vad/data/silero_vad_openvino_16k.onnx", "speech in 32 ms of sound"),
    from_file("silero_vad_sequence", 31, "silero_vad/data/silero_vad_16k_sequence.onnx", "speech in a second of sound"),
    *(
        from_file(model, batch, device="cuda", precision="fp16")
        for model in ("resnet50", "resnet18", "mobilenet_v2", "efficientnet_b0")
        for batch in (1, 32)
    ),
    *(from_file("bert_base", batch, what="128 tokens", device="cuda", precision="fp16") for batch in (1, 32)),
)


def pipeline(threads, **goals):
    """From JPEG files to normalized batches."""
    clock = "of one processor" if threads == 1 else f"by the clock, with {threads} threads"
    return Case(
        name=f"data/cpu{threads}-jpeg224",
        kind="throughput",
        batch=32,
        photographs=True,
        threads=threads,
        peers=PIPELINES,
        goals=tuple(goals.items()),
        summary=f"photographs of 500x375, decode, random-resized crop to 224, mirror, normalize, images/s {clock}",
    )


def gpu_pipeline():
    """From JPEG files to batches of bytes on the GPU; the peers of the CPU alone leave theirs there."""
    return Case(
        name="data/gpu-jpeg224",
        kind="throughput",
        device="cuda",
        batch=256,
        photographs=True,
        peers=GPU_PIPELINES,
        goals=(("torchvision", 1.2),),
        summary="photographs of 500x375 decoded by the GPU, random-resized crop to 224, mirror, images/s by the clock",
    )


CASES = (
    throughput("resnet50", 32, True, torch=1.5),
    throughput("resnet50", 1, False, torch=1.3, onnxruntime=1.0),
    throughput("resnet50", 32, False, torch=1.3, onnxruntime=1.0),
    throughput("resnet18", 32, True, torch=1.0),
    throughput("resnet18", 1, False, torch=1.0, onnxruntime=1.0),
    throughput("resnet18", 32, False, torch=1.0, onnxruntime=1.0),
    throughput("alexnet", 32, True, torch=1.0),
    throughput("alexnet", 32, False, torch=1.0, onnxruntime=1.0),
    throughput("mlp", 128, True, torch=1.0),
    throughput("mlp", 128, False, torch=1.0, onnxruntime=1.0),
    throughput("resnet50", 256, True, "cuda", "fp16", torch=1.5),
    throughput("resnet50", 256, True, "cuda", "fp16", deterministic=True, torch=1.0),
    throughput("resnet50", 64, True, "cuda", "fp16", torch=1.2),
    throughput("resnet50", 512, True, "cuda", "fp16", torch=1.2),
    throughput("resnet50", 256, True, "cuda", "bf16", torch=1.5),
    throughput("resnet50", 256, True, "cuda", "tf32", torch=1.3),
    throughput("resnet18", 256, True, "cuda", "fp16", torch=1.2),
    throughput("resnet101", 128, True, "cuda", "fp16", torch=1.2),
    throughput("resnet101", 128, True, "cuda", "fp16", recompute=True, torch=1.2),
    throughput("resnet152", 128, True, "cuda", "fp16", torch=1.2),
    throughput("alexnet", 1024, True, "cuda", "fp16", torch=1.2),
    throughput("alexnet", 1024, True, "cuda", "fp16", recompute=True, torch=1.2),
    throughput("resnet50", 1, False, "cuda", "fp16", torch=1.0),
    throughput("resnet50", 8, False, "cuda", "fp16", torch=1.0),
    throughput("resnet50", 32, False, "cuda", "fp16", torch=1.0),
    throughput("resnet50", 128, False, "cuda", "fp16", torch=1.0),
    *FILES,
    loaded("resnet50", 256, "cuda", "fp16"),
    loaded("resnet50", 32, "cpu", "fp32"),
    language("bert-base-train-b64-s128", "bert_base", 64, 128, 30522, "bf16", torch=1.2),
    language("bert-large-train-b32-s512", "bert_large", 32, 512, 30522, "bf16", torch=1.4),
    dropped_language("bert-base-train-b64-s128", "bert_base", 64, 128, 30522, "bf16", 0.1, torch=1.2),
    dropped_language("bert-large-train-b32-s512", "bert_large", 32, 512, 30522, "bf16", 0.1, torch=1.2),
    packed_language("bert-large-train-packed", "bert_large", 32, 512, 30522, "bf16", packed=8, counted="next_sentence", torch=2.0),
    packed_language(
        "bert-large-train-unpadded", "bert_large", 32, 512, 30522, "bf16", packed=1, counted="next_sentence", unpadded=True, torch=2.0),
    language("transformer-big-train-t16k", "transformer_big", 512, 32, 32768, "bf16", parallel=True, torch=1.4),
    language("transformer-xl-base-train", "transformer_xl_base", 32, 192, 32768, "bf16", torch=1.4),
    language("decoder-350m-train", "decoder_350m", 8, 1024, 50257, "bf16", torch=1.3),
    language("llama-300m-train", "llama_300m", 8, 1024, 32000, "bf16", torch=1.3),
    pipeline(1, torchvision=1.6, dali=1.2),
    pipeline(2, torchvision=1.6, dali=1.2),
    loaded_from_files("resnet50", 256, "cuda", "fp16"),
    gpu_pipeline(),
    Case(
        name="cpu/resnet50-compile",
        kind="compile",
        model="resnet50",
        batch=32,
        train=True,
        peers=("torch-compile",),
        allowed=2.0,
        summary="seconds to compile ResNet-50's training step, tuning file present",
    ),
    Case(name="cpu/startup", kind="startup", allowed=50.0, summary="milliseconds of `tessera models`, beside the 50 allowed"),
    Case(name="cpu/program-size", kind="size", allowed=10e6, summary="bytes of the program without plug-ins, beside the 10 MB allowed"),
)


def find(patterns):
    """Cases by name or by shell pattern, in the list's order; raises KeyError with the first that matches nothing."""
    for pattern in patterns:
        if not any(fnmatch.fnmatch(case.name, pattern) for case in CASES):
            raise KeyError(pattern)
    return [case for case in CASES if any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns)]
