"""Small models of public libraries, built from their own configurations with random weights, for
``benchmarks.library_models``. Nothing is fetched. A library is imported when a model of it is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

#: The library → the module that is imported.
PACKAGES = {
    "torch": "torch",
    "transformers": "transformers",
    "diffusers": "diffusers",
    "timm": "timm",
    "torchvision": "torchvision",
    "torch-geometric": "torch_geometric",
}

#: Gives the loss and the output of a module for its inputs.
Call = Callable[[nn.Module, dict[str, Any]], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Case:
    """A model on the CPU, in float32, and what it is trained with: tensors by name, also in lists and dictionaries."""

    module: nn.Module
    inputs: dict[str, Any]
    call: Call


def _random(*shape: int, seed: int = 1) -> torch.Tensor:
    """The same numbers in float32 whatever torch's default type is."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32))


def _numbers(below: int, *shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(seed))


def _labelled(module: nn.Module, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss is the model's own."""
    found = module(**inputs)
    return found.loss, found.logits


def _to_target(output: Callable[[Any], torch.Tensor] = lambda found: found) -> Call:
    """The loss is the mean square of what is between an output and numbers drawn at random."""

    def call(module: nn.Module, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        y = output(module(**inputs))
        return functional.mse_loss(y, _random(*y.shape, seed=3).to(y.device, y.dtype)), y

    return call


# ---- torch -----------------------------------------------------------------------------------------------------------


class _Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.symbols, self.head = nn.Embedding(13, 32), nn.Linear(32, 13)
        how: dict[str, Any] = {"dim_feedforward": 64, "dropout": 0.0, "batch_first": True}
        self.both = nn.Transformer(32, 4, num_encoder_layers=2, num_decoder_layers=2, **how)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1], device=x.device, dtype=self.head.bias.dtype)
        shown = self.both(self.symbols(x), self.symbols(y), tgt_mask=causal, src_key_padding_mask=x == 12)
        return self.head(shown)  # type: ignore[no-any-return]


class _Recurrent(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cells = kind(8, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0])  # type: ignore[no-any-return]


def _transformer() -> Case:
    x = _numbers(12, 4, 8)
    x[::2, 6:] = 12
    return Case(_Translator(), {"x": x, "y": _numbers(12, 4, 7)}, _to_target())


def _recurrent(kind: type[nn.LSTM] | type[nn.GRU]) -> Case:
    return Case(_Recurrent(kind), {"x": _random(4, 9, 8)}, _to_target())


# ---- transformers ----------------------------------------------------------------------------------------------------

_VOCABULARY, _LENGTH = 67, 12
_BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_DECODER = {**_BERT, "num_key_value_heads": 2}
_SHORT = {"max_position_embeddings": 32}
_VISION = {**_BERT, "image_size": 16, "patch_size": 4}
_NO_SYMBOLS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _of_transformers(name: str, config: str, options: dict[str, Any], inputs: dict[str, Any], call: Call) -> Case:
    library = importlib.import_module("transformers")
    return Case(getattr(library, name)(getattr(library, config)(**options)), inputs, call)


def _text() -> dict[str, torch.Tensor]:
    """Symbols of which the second sequence ends early, and the same as labels."""
    symbols, seen = _numbers(_VOCABULARY - 3, 2, _LENGTH) + 3, torch.ones(2, _LENGTH, dtype=torch.int64)
    seen[1, 9:] = 0
    return {"input_ids": symbols, "attention_mask": seen, "labels": symbols.masked_fill(seen == 0, -100)}


def _language(name: str, config: str, **options: Any) -> Case:
    return _of_transformers(name, config, {"vocab_size": _VOCABULARY, **_NO_SYMBOLS, **options}, _text(), _labelled)


def _vision(name: str, config: str, **options: Any) -> Case:
    inputs = {"pixel_values": _random(2, 3, 16, 16), "labels": _numbers(3, 2)}
    return _of_transformers(name, config, {**_VISION, "num_labels": 3, **options}, inputs, _labelled)


def _clip() -> Case:
    text = {**_BERT, **_NO_SYMBOLS, "vocab_size": _VOCABULARY, "max_position_embeddings": _LENGTH}
    options = {"text_config": text, "vision_config": _VISION, "projection_dim": 16}
    inputs: dict[str, Any] = {name: value for name, value in _text().items() if name != "labels"}
    inputs |= {"pixel_values": _random(2, 3, 16, 16), "return_loss": True}

    def call(module: nn.Module, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        found = module(**inputs)
        return found.loss, found.logits_per_image

    return _of_transformers("CLIPModel", "CLIPConfig", options, inputs, call)


def _whisper() -> Case:
    options = {
        **_NO_SYMBOLS, "vocab_size": _VOCABULARY, "d_model": 32, "num_mel_bins": 8, "decoder_start_token_id": 1,
        "max_source_positions": 16, "max_target_positions": 16,
        **{f"{part}_{what}": 2 for part in ("encoder", "decoder") for what in ("layers", "attention_heads")},
        **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
    }  # fmt: skip
    inputs = {"input_features": _random(2, 8, 32), "labels": _numbers(_VOCABULARY, 2, 7)}
    return _of_transformers("WhisperForConditionalGeneration", "WhisperConfig", options, inputs, _labelled)


def _bart() -> Case:
    parts = {f"{part}_{what}": 2 for part in ("encoder", "decoder") for what in ("layers", "attention_heads")}
    parts |= {f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")}
    return _language(
        "BartForConditionalGeneration", "BartConfig", d_model=32, decoder_start_token_id=2, forced_eos_token_id=2,
        **_SHORT, **parts,
    )  # fmt: skip


# ---- diffusers -------------------------------------------------------------------------------------------------------

_SMALL_UNET = {"sample_size": 16, "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}


def _sample(found: Any) -> torch.Tensor:
    return found.sample  # type: ignore[no-any-return]


def _of_diffusers(name: str, inputs: dict[str, Any], **options: Any) -> Case:
    return Case(getattr(importlib.import_module("diffusers"), name)(**options), inputs, _to_target(_sample))


def _noisy(channels: int, size: int) -> dict[str, torch.Tensor]:
    return {"sample": _random(2, channels, size, size), "timestep": torch.tensor([3, 700])}


# ---- timm ------------------------------------------------------------------------------------------------------------


def _images(size: int, name: str = "x", count: int = 2) -> dict[str, torch.Tensor]:
    return {name: _random(count, 3, size, size)}


def _many_images() -> dict[str, torch.Tensor]:
    """Enough for nets that halve images five times: batch norm of two numbers makes 1 and -1 of any difference."""
    return _images(64, count=4)


def _of_timm(name: str, inputs: dict[str, torch.Tensor], **options: Any) -> Case:
    made = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=5, **options)
    return Case(made, inputs, _to_target())


def _swin() -> Case:
    kind = importlib.import_module("timm.models.swin_transformer").SwinTransformer
    sizes = {"img_size": 32, "patch_size": 2, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "window_size": 4}
    return Case(kind(num_classes=5, **sizes), _images(32), _to_target())


def _mixer() -> Case:
    kind = importlib.import_module("timm.models.mlp_mixer").MlpMixer
    return Case(kind(num_classes=5, img_size=16, patch_size=4, num_blocks=2, embed_dim=32), _images(16), _to_target())


# ---- torchvision -----------------------------------------------------------------------------------------------------


def _vision_model(name: str) -> Any:
    return importlib.import_module(f"torchvision.models.{name}")


def _resnet() -> Case:
    models = _vision_model("resnet")
    return Case(models.ResNet(models.BasicBlock, [1, 1, 1, 1], num_classes=5), _many_images(), _to_target())


def _mobilenet() -> Case:
    models = _vision_model("mobilenetv3")
    rows = [(8, 3, 16, 8, True, "RE", 2), (8, 3, 24, 16, False, "RE", 2), (16, 5, 48, 16, True, "HS", 1)]
    settings = [models.InvertedResidualConfig(*row, 1, 1.0) for row in rows]
    return Case(models.MobileNetV3(settings, last_channel=32, num_classes=5), _images(32), _to_target())


def _densenet() -> Case:
    kind = _vision_model("densenet").DenseNet
    sizes: dict[str, Any] = {"growth_rate": 4, "block_config": (2, 2), "num_init_features": 8, "bn_size": 2}
    return Case(kind(num_classes=5, **sizes), _images(32), _to_target())


def _found_boxes(module: nn.Module, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    losses = torch.stack(list(module(**inputs).values()))
    return losses.sum(), losses


def _backbone(stride: int, channels: Any) -> nn.Module:
    """Convolutions; ``channels`` is how a detector wants to know that they give 16."""
    made = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 3, stride, 1), nn.SiLU())
    made.out_channels = channels
    return made


def _boxes() -> dict[str, Any]:
    """Two images, one with two things and one with one."""
    boxes = [torch.tensor([[2.0, 3.0, 14.0, 15.0], [16.0, 10.0, 30.0, 28.0]]), torch.tensor([[6.0, 6.0, 22.0, 20.0]])]
    targets = [{"boxes": some, "labels": torch.arange(len(some)) % 2 + 1} for some in boxes]
    return {"images": [torch.sigmoid(_random(3, 32, 32, seed=place)) for place in range(2)], "targets": targets}


def _faster_rcnn() -> Case:
    """Takes so many boxes that it takes all: which ones it takes is drawn at random otherwise."""
    parts, anchors = _vision_model("detection.faster_rcnn"), _vision_model("detection.anchor_utils").AnchorGenerator
    made = parts.FasterRCNN(
        _backbone(2, 16), min_size=32, max_size=32, rpn_anchor_generator=anchors(((8, 16),), ((0.5, 1.0),)),
        box_roi_pool=importlib.import_module("torchvision.ops").MultiScaleRoIAlign(["0"], 3, 2),
        box_head=parts.TwoMLPHead(16 * 9, 32), box_predictor=parts.FastRCNNPredictor(32, 3),
        rpn_batch_size_per_image=4096, box_batch_size_per_image=4096,
    )  # fmt: skip
    return Case(made, _boxes(), _found_boxes)


def _ssd() -> Case:
    anchors = _vision_model("detection.anchor_utils").DefaultBoxGenerator([[2]])
    made = _vision_model("detection.ssd").SSD(_backbone(4, [16]), anchors, (32, 32), 3)
    return Case(made, _boxes(), _found_boxes)


# ---- torch-geometric -------------------------------------------------------------------------------------------------


def _graph(name: str, **options: Any) -> Case:
    kind = getattr(importlib.import_module("torch_geometric.nn"), name)
    inputs = {"x": _random(30, 8), "edge_index": _numbers(30, 2, 90)}
    return Case(kind(8, 16, num_layers=2, out_channels=4, **options), inputs, _to_target())


#: (library, model) → what builds it.
MODELS: dict[tuple[str, str], Callable[[], Case]] = {
    ("torch", "nn.Transformer"): _transformer,
    ("torch", "nn.LSTM"): lambda: _recurrent(nn.LSTM),
    ("torch", "nn.GRU"): lambda: _recurrent(nn.GRU),
    ("transformers", "BertForMaskedLM"): lambda: _language("BertForMaskedLM", "BertConfig", **_BERT, **_SHORT),
    ("transformers", "RobertaForMaskedLM"): lambda: _language(
        "RobertaForMaskedLM", "RobertaConfig", **_BERT, **_SHORT
    ),
    ("transformers", "DistilBertForMaskedLM"): lambda: _language(
        "DistilBertForMaskedLM", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64, **_SHORT
    ),
    ("transformers", "GPT2LMHeadModel"): lambda: _language(
        "GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=32
    ),
    ("transformers", "LlamaForCausalLM"): lambda: _language("LlamaForCausalLM", "LlamaConfig", **_DECODER),
    ("transformers", "MistralForCausalLM"): lambda: _language(
        "MistralForCausalLM", "MistralConfig", sliding_window=4, **_DECODER
    ),
    ("transformers", "Qwen2ForCausalLM"): lambda: _language("Qwen2ForCausalLM", "Qwen2Config", **_DECODER),
    ("transformers", "Qwen3ForCausalLM"): lambda: _language("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **_DECODER),
    ("transformers", "Gemma2ForCausalLM"): lambda: _language(
        "Gemma2ForCausalLM", "Gemma2Config", head_dim=8, sliding_window=4, **_DECODER
    ),
    ("transformers", "MixtralForCausalLM"): lambda: _language(
        "MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **_DECODER
    ),
    ("transformers", "MambaForCausalLM"): lambda: _language(
        "MambaForCausalLM", "MambaConfig", hidden_size=16, state_size=4, num_hidden_layers=2, time_step_rank=2
    ),
    ("transformers", "T5ForConditionalGeneration"): lambda: _language(
        "T5ForConditionalGeneration", "T5Config", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, dropout_rate=0.0,
    ),
    ("transformers", "BartForConditionalGeneration"): _bart,
    ("transformers", "ViTForImageClassification"): lambda: _vision("ViTForImageClassification", "ViTConfig"),
    ("transformers", "CLIPModel"): _clip,
    ("transformers", "WhisperForConditionalGeneration"): _whisper,
    ("diffusers", "UNet2DModel"): lambda: _of_diffusers(
        "UNet2DModel", _noisy(3, 16), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), **_SMALL_UNET,
    ),
    ("diffusers", "UNet2DConditionModel"): lambda: _of_diffusers(
        "UNet2DConditionModel", {**_noisy(4, 16), "encoder_hidden_states": _random(2, 5, 16, seed=4)},
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=4, **_SMALL_UNET,
    ),
    ("diffusers", "AutoencoderKL"): lambda: _of_diffusers(
        "AutoencoderKL", _images(16, "sample"), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, **_SMALL_UNET,
    ),
    ("diffusers", "DiTTransformer2DModel"): lambda: _of_diffusers(
        "DiTTransformer2DModel",
        {"hidden_states": _random(2, 4, 8, 8), "timestep": torch.tensor([3, 700]), "class_labels": _numbers(10, 2)},
        num_attention_heads=4, attention_head_dim=8, num_layers=2, sample_size=8, num_embeds_ada_norm=10,
    ),
    ("timm", "ResNet"): lambda: _of_timm("test_resnet", _many_images()),
    ("timm", "ConvNeXt"): lambda: _of_timm("test_convnext", _images(32)),
    ("timm", "EfficientNet"): lambda: _of_timm("test_efficientnet", _many_images()),
    ("timm", "VisionTransformer"): lambda: _of_timm("test_vit", _images(32), img_size=32),
    ("timm", "SwinTransformer"): _swin,
    ("timm", "MlpMixer"): _mixer,
    ("torchvision", "ResNet"): _resnet,
    ("torchvision", "MobileNetV3"): _mobilenet,
    ("torchvision", "DenseNet"): _densenet,
    ("torchvision", "FasterRCNN"): _faster_rcnn,
    ("torchvision", "SSD"): _ssd,
    ("torch-geometric", "GCN"): lambda: _graph("GCN"),
    ("torch-geometric", "GAT"): lambda: _graph("GAT", heads=2),
    ("torch-geometric", "GraphSAGE"): lambda: _graph("GraphSAGE"),
    ("torch-geometric", "GIN"): lambda: _graph("GIN"),
}  # fmt: skip


def build(library: str, name: str) -> Case:
    """A model with the same random weights each time, which draws no random numbers when it is called: all dropout is
    off, as are random depths."""
    torch.manual_seed(0)
    case = MODELS[library, name]()
    case.module.train()
    for module in case.module.modules():
        kind = type(module).__name__.lower()
        for attribute, value in vars(module).items():
            if isinstance(value, float) and ("drop" in attribute or attribute == "p" and "drop" in kind):
                setattr(module, attribute, 0.0)
            if isinstance(value, float) and attribute == "p" and "stochastic" in kind:
                setattr(module, attribute, 0.0)
        config = getattr(module, "config", None)
        for attribute in [name for name in vars(config or object) if "drop" in name]:
            if isinstance(getattr(config, attribute), float):
                setattr(config, attribute, 0.0)
    return case
