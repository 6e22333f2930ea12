"""One model over several devices, with accelerate."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ...core.errors import require, shown
from ...util.extras import needed
from ..transformer.network import Layer, Transformer
from .device import parse_device

DeviceMap = str | Mapping[str, str | int | torch.device]


class Placement:
    """Which device each parameter goes to; whole layers stay together."""

    def __init__(self, network: Transformer, device_map: DeviceMap, dtype: torch.dtype) -> None:
        self.accelerate = needed("accelerate", "devices", "device_map")
        self.network = network
        self.map = self._decide(device_map, dtype)
        disk = "disk" in map(str, self.map.values())
        require(not disk, "the devices and this machine's memory together are too small for the model.")
        self.devices = list(dict.fromkeys(parse_device(device) for device in self.map.values()))

    def _decide(self, device_map: DeviceMap, dtype: torch.dtype) -> dict[str, str | int | torch.device]:
        known = (isinstance(device_map, str) and device_map == "auto") or isinstance(device_map, Mapping)
        require(known, f"device_map is 'auto' or a mapping of module names, not {shown(device_map)}.")
        if device_map == "auto":
            device_map = self.accelerate.infer_auto_device_map(
                self.network, no_split_module_classes=[Layer.__name__], dtype=dtype
            )
        assert isinstance(device_map, Mapping)
        return dict(device_map)

    def device_of(self, name: str) -> torch.device:
        """The device of a parameter: that of the longest module name it begins with."""
        found = [key for key in self.map if not key or name == key or name.startswith(f"{key}.")]
        require(len(found) > 0, f"the device_map says nothing about '{name}'.")
        return parse_device(self.map[max(found, key=len)])

    def attach(self) -> None:
        """Let hidden states follow the layers from device to device. A layer also reads parameters of modules that it
        does not call, so one that waits in the CPU's memory comes over as a whole."""
        if len({str(device) for device in self.map.values()}) > 1:
            self.accelerate.dispatch_model(self.network, self.map, preload_module_classes=[Layer.__name__])
