"""torchvision's nms and roi_align, against what they are defined by."""

import importlib
import importlib.util
from typing import Any

import pytest
import torch
from triton.backends.spirv.torch.ops import detection

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def _kept(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> list[int]:
    """One after the other, in float32 as torchvision computes."""
    left, top, right, bottom = boxes.unbind(1)
    area, kept = (right - left) * (bottom - top), []
    order = torch.sort(scores, stable=True, descending=True)[1].tolist()
    for i in order:
        width = torch.minimum(right[i], right[kept]) - torch.maximum(left[i], left[kept])
        height = torch.minimum(bottom[i], bottom[kept]) - torch.maximum(top[i], top[kept])
        both = width.clamp_min(0) * height.clamp_min(0)
        if not ((both / (area[i] + area[kept] - both)).double() > threshold).any():
            kept.append(i)
    return kept


@pytest.mark.parametrize("count", [1, 31, 32, 33, 200, 1030])
def test_boxes_that_are_kept(count: int) -> None:
    """Of scores among which there are equal ones."""
    torch.manual_seed(count)
    boxes = torch.rand(count, 4) * 50
    boxes[:, 2:] = boxes[:, :2] + torch.rand(count, 2) * 30 + 0.1
    scores = torch.rand(count).mul(20).round() / 20
    for threshold in (0.3, 0.5, 0.7):
        found = detection.nms(boxes.to("spirv"), scores.to("spirv"), threshold)
        assert found.dtype == torch.int64 and found.tolist() == _kept(boxes, scores, threshold)


def test_no_boxes_and_the_threshold_itself() -> None:
    none = torch.empty(0, 4, device="spirv")
    assert detection.nms(none, none[:, 0], 0.5).shape == (0,)
    boxes = torch.tensor([[0.0, 0, 1, 1], [0.0, 0, 1, 0.7]], device="spirv")  # they share 0.7 as float32 has it
    scores = torch.tensor([1.0, 0.5], device="spirv")
    shared = float(torch.tensor(0.7))
    assert detection.nms(boxes, scores, shared).tolist() == [0, 1]
    assert detection.nms(boxes, scores, shared - 1e-12).tolist() == [0]


def _aligned(
    x: torch.Tensor, rois: torch.Tensor, size: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> Any:
    """He et al. 2017: means of bilinear samples, each by hand."""
    _, channels, height, width = x.shape
    out = []
    for image, *ends in rois.tolist():
        left, top, right, bottom = (end * scale - (0.5 if aligned else 0.0) for end in ends)
        wide, tall = right - left, bottom - top
        if not aligned:
            wide, tall = max(wide, 1.0), max(tall, 1.0)
        wide, tall = wide / size[1], tall / size[0]
        down, across = (ratio or max(-int(-step // 1), 0) for step in (tall, wide))
        for p in range(size[0]):
            for q in range(size[1]):
                total = x.new_zeros(channels)
                for v in range(down):
                    for u in range(across):
                        at_y = top + p * tall + (v + 0.5) * tall / down
                        at_x = left + q * wide + (u + 0.5) * wide / across
                        if -1 <= at_y <= height and -1 <= at_x <= width:
                            total = total + _between(x[int(image)], at_y, at_x)
                out.append(total / max(down * across, 1))
    return torch.stack(out).view(len(rois), *size, channels).permute(0, 3, 1, 2)


def _between(x: torch.Tensor, at_y: float, at_x: float) -> torch.Tensor:
    at_y, at_x = (min(max(at, 0.0), size - 1) for at, size in zip((at_y, at_x), x.shape[1:], strict=True))
    y, z = int(at_y), int(at_x)
    b, a = at_y - y, at_x - z
    y1, z1 = min(y + 1, x.shape[1] - 1), min(z + 1, x.shape[2] - 1)
    return (1 - b) * ((1 - a) * x[:, y, z] + a * x[:, y, z1]) + b * ((1 - a) * x[:, y1, z] + a * x[:, y1, z1])


_ROIS = [[0, 1.5, 2.5, 9, 7.0], [1, 0, 0, 12, 9], [0, -5, -5, 4, 4], [1, 5, 5, 5.2, 5.1], [1, 7, 3, 30, 20]]
_ROIS += [[0, 7, 7, 3, 3]]


@pytest.mark.parametrize(
    ("aligned", "ratio", "scale"), [(False, 0, 1.0), (True, 0, 0.5), (True, 2, 1.0), (False, 3, 0.7)]
)
def test_rois_and_the_gradient_of_images(aligned: bool, ratio: int, scale: float) -> None:
    """Inside, past the edges, narrower than a sample, and upside down."""
    torch.manual_seed(0)
    x, rois, size = torch.randn(2, 3, 10, 13, requires_grad=True), torch.tensor(_ROIS), (4, 3)
    right = _aligned(x.double(), rois, size, scale, ratio, aligned)
    weights = torch.linspace(-1, 2, right.numel()).view(right.shape)
    (of_x,) = torch.autograd.grad((right * weights).sum(), x)
    found = detection.roi_align(x.detach().to("spirv"), rois.to("spirv"), scale, *size, ratio, aligned)
    torch.testing.assert_close(found.cpu(), right.detach().float(), rtol=1e-4, atol=1e-4)
    grad = detection.roi_align_backward(weights.to("spirv"), rois.to("spirv"), scale, *size, *x.shape, ratio, aligned)
    torch.testing.assert_close(grad.cpu(), of_x, rtol=1e-4, atol=1e-4)
    halves = detection.roi_align(x.detach().half().to("spirv"), rois.to("spirv"), scale, *size, ratio, aligned)
    torch.testing.assert_close(halves.cpu().float(), right.detach().float(), rtol=5e-3, atol=5e-3)


#: As torchvision defines them, where it is not installed.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
)


def test_torchvisions_operations_find_them() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    if importlib.util.find_spec("torchvision") is None:
        for schema in _SCHEMAS:
            library.define(schema)
    else:
        importlib.import_module("torchvision")
    x, rois = torch.randn(1, 2, 8, 8, device="spirv"), torch.tensor([[0, 1.0, 1.0, 6.0, 7.0]], device="spirv")
    found = torch.ops.torchvision.roi_align(x, rois, 1.0, 3, 3, -1, False)
    assert torch.equal(found, detection.roi_align(x, rois, 1.0, 3, 3, -1, False)) and found.any()
    assert torch.ops.torchvision.nms(rois[:, 1:], x[0, 0, 0, :1], 0.5).tolist() == [0]
