"""The wheel's bill of materials: CycloneDX 1.5, as JSON, in dist-info/sboms/ (PEP 770)."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

NAME = "sboms/triton-spirv.cdx.json"
# Files of upstream's wheel that are somebody's compiled work.
BINARY_SUFFIXES = (".so", ".a", ".bc", ".o")


@dataclass(frozen=True)
class Upstream:
    """The release that the wheel is made of."""

    name: str
    version: str
    file: str
    sha256: str
    url: str
    patches: tuple[tuple[str, str], ...]
    """(file name, subject) of each patch in it."""
    binaries: tuple[tuple[str, str], ...]
    """(path in the wheel, digest as in RECORD) of each compiled file."""


@dataclass(frozen=True)
class Part:
    """Something else that is in the wheel, or that it depends on."""

    name: str
    version: str
    purl: str = ""
    description: str = ""
    licence: str = ""
    inside: bool = True
    extra: dict[str, Any] = field(default_factory=dict)


def purl(name: str, version: str) -> str:
    """The package URL of a Python distribution."""
    return f"pkg:pypi/{name.lower().replace('_', '-')}" + (f"@{quote(version, safe='')}" if version else "")


def is_binary(path: str, executable: bool) -> bool:
    """Whether a file of the wheel is listed by itself."""
    return executable and not path.endswith(".py") or path.endswith(BINARY_SUFFIXES) or ".so." in path


def _component(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "library", "bom-ref": part.purl or part.name, "name": part.name}
    if part.version:
        found["version"] = part.version
    if part.purl:
        found["purl"] = part.purl
    if part.description:
        found["description"] = part.description
    if part.licence:
        found["licenses"] = [{"license": {"id": part.licence}}]
    if not part.inside:
        found["scope"] = "required"
    return found | part.extra


def _upstream_part(upstream: Upstream) -> Part:
    patches = [
        {
            "type": "unofficial",
            "diff": {"url": f"patches/{name}"},
            "resolves": [{"type": "enhancement", "name": subject}],
        }
        for name, subject in upstream.patches
    ]
    files = [
        {"type": "file", "bom-ref": path, "name": path, "hashes": [{"alg": "SHA-256", "content": _hex(digest)}]}
        for path, digest in upstream.binaries
    ]
    extra: dict[str, Any] = {
        "hashes": [{"alg": "SHA-256", "content": upstream.sha256}],
        "externalReferences": [{"type": "vcs", "url": upstream.url}],
        "properties": [{"name": "triton-spirv:file", "value": upstream.file}],
        "components": files,
    }
    if patches:
        extra["pedigree"] = {"patches": patches}
    return Part(upstream.name, upstream.version, purl(upstream.name, upstream.version), licence="MIT", extra=extra)


def _hex(record_digest: str) -> str:
    padded = record_digest + "=" * (-len(record_digest) % 4)
    return base64.urlsafe_b64decode(padded).hex()


def requirement_part(requirement: str) -> Part:
    """A `name==version` requirement as a part that lies outside the wheel."""
    name, _, version = requirement.partition("==")
    version = version.lstrip("=")
    return Part(name, version, purl(name, version), inside=False)


def bill(name: str, version: str, upstream: Upstream | None, parts: Iterable[Part]) -> bytes:
    """The document. The same content gives the same bytes: its serial number is made of its content, and it has no
    time stamp."""
    own = purl(name, version)
    described = [*([_upstream_part(upstream)] if upstream else []), *parts]
    components = [_component(part) for part in described]
    body: dict[str, Any] = {
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            },
            "tools": {"components": [{"type": "application", "name": "triton-spirv tools"}]},
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [component["bom-ref"] for component in components]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return (json.dumps(head | body, indent=1) + "\n").encode()
