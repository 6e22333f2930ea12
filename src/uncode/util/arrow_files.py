"""Files and folders on this machine or in a store such as S3, through pyarrow's file systems."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError
from .extras import needed
from .write import write_whole

PURPOSE = "reading and writing files of a cluster"


@dataclass(frozen=True)
class ArrowPath:
    """A file or a folder. It can be sent to another process: the file system is found again there."""

    uri: str
    """A path of this machine, or `s3://bucket/folder`; a query such as `?endpoint_override=HOST:PORT` is read too."""

    @cached_property
    def _found(self) -> tuple[Any, str]:
        fs = needed("pyarrow.fs", "cluster", PURPOSE)
        if "://" not in self.uri:
            return fs.LocalFileSystem(), os.path.abspath(self.uri)
        try:
            found, path = fs.FileSystem.from_uri(self.uri)
        except (OSError, ValueError) as error:
            raise UncodeError(f"'{self.uri}' cannot be opened: {_line(error)}.") from None
        return found, path

    def __reduce__(self) -> tuple[type[ArrowPath], tuple[str]]:
        return ArrowPath, (self.uri,)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def files(self) -> dict[str, bytes]:
        """A file, or all files of a folder in the order of their names, with their contents."""
        fs, path = self._found
        types = needed("pyarrow.fs", "cluster", PURPOSE)
        try:
            info = fs.get_file_info(path)
            if info.type == types.FileType.NotFound:
                raise UncodeError(f"there is no '{self.uri}': give a file or a folder.")
            if info.type == types.FileType.File:
                return {info.base_name: self._read(path)}
            inside = fs.get_file_info(types.FileSelector(path))
            paths = sorted(one.path for one in inside if one.type == types.FileType.File)
            return {os.path.basename(one): self._read(one) for one in paths}
        except OSError as error:
            raise UncodeError(f"'{self.uri}' cannot be read: {_line(error)}.") from error

    def _read(self, path: str) -> bytes:
        with self._found[0].open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())

    def names(self) -> set[str]:
        """The names of the files in this folder; none if there is no such folder."""
        fs, path = self._found
        selector = needed("pyarrow.fs", "cluster", PURPOSE).FileSelector(path, allow_not_found=True)
        try:
            return {info.base_name for info in fs.get_file_info(selector) if info.is_file}
        except OSError as error:
            raise UncodeError(f"'{self.uri}' cannot be read: {_line(error)}.") from error

    def read(self, name: str) -> bytes:
        """A file of this folder."""
        return self._read(f"{self._found[1]}/{name}")

    def write(self, name: str, content: bytes) -> None:
        """Write a file of this folder, whole or not at all: a store shows an object once it is complete."""
        fs, path = self._found
        try:
            fs.create_dir(path, recursive=True)
            if self.is_local:
                write_whole(Path(path) / name, content)
                return
            with fs.open_output_stream(f"{path}/{name}", compression=None) as stream:
                stream.write(content)
        except OSError as error:
            raise UncodeError(f"'{self.uri}' cannot be written: {_line(error)}.") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
