"""Checkpoints from the Hugging Face hub: tokens, revisions, cache and offline mode are those of huggingface_hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from ...core.errors import UncodeError, require
from ...models import TABLE
from ...models.names import INSTEAD
from .folder import is_whole

WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
"""What a model is made of; pickled weights and code are not even downloaded."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
)
"""A folder with one of them has a tokenizer."""
UNWANTED = ["*/*"]
"""Folders: other formats, and checkpoints of the training."""


def cached(name: str) -> list[str]:
    """Revisions of a hub id that lie in the local cache with all their weights."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    return sorted(p.parent.name for p in folder.glob("*/config.json") if is_whole(p.parent))


class HubModel:
    """A model on the hub. The hub is asked once; if it does not answer, the local cache is used."""

    def __init__(self, name: str, revision: str | None, token: str | None) -> None:
        self.name, self.revision, self.token, self.instead = name, revision, token, INSTEAD
        self._silence = "cannot be reached"

    def config(self) -> Path:
        """The model's config.json alone, to learn what it is before gigabytes are fetched."""
        with self._one_sentence():
            return self._file("config.json")

    def config_and_table(self) -> Path:
        """The folder of the model's config.json, and of its frequency table if it has one; no weights."""
        from huggingface_hub import errors

        folder = self.config().parent
        with self._one_sentence(), suppress(errors.EntryNotFoundError):
            self._file(TABLE)
        return folder

    def _file(self, name: str) -> Path:
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(
                self.name, name, revision=self.revision, token=self.token, local_files_only=not self._answers
            )
        )

    def snapshot(self) -> Path:
        """The model's folder in the local cache, downloaded with a progress bar where it is not there yet."""
        from huggingface_hub import errors

        with self._one_sentence():
            found = self._folder(WANTED)
            weights = any(found.glob("*.safetensors"))
            if not weights and not self._answers:
                raise errors.LocalEntryNotFoundError("only the configuration was ever downloaded")
        require(
            weights,
            f"'{self.name}' has no safetensors on the hub, and pickled weights can run code and are never read: "
            f"run `hf download {self.name} --local-dir FOLDER` and `uncode convert FOLDER`, or take a revision that "
            "has safetensors.",
        )
        return found

    def tokenizer(self) -> Path:
        """The folder of the model's tokenizer in the local cache; the weights are not fetched."""
        self.instead = "give a local folder or a tokenizer.json"
        with self._one_sentence():
            return self._folder(["config.json", *TOKENIZER_FILES, "merges.txt", "special_tokens_map.json", "*.jinja"])

    def _folder(self, patterns: list[str]) -> Path:
        """The model's folder in the local cache, with the files that match."""
        from huggingface_hub import snapshot_download

        return Path(
            snapshot_download(
                self.name,
                revision=self.revision,
                token=self.token,
                allow_patterns=patterns,
                ignore_patterns=UNWANTED,
                local_files_only=not self._answers,
            )
        )

    @cached_property
    def _answers(self) -> bool:
        """Whether the hub can be reached; an error if it says no. Asked without the retries of a download."""
        from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url

        if constants.HF_HUB_OFFLINE:
            return False
        try:
            url = hf_hub_url(self.name, "config.json", revision=self.revision)
            found = get_hf_file_metadata(url, token=self.token)
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status < 500 and status != 429:
                raise
            self._silence = f"answers {status}"
            return False
        except Exception as error:  # the http client's own kinds: no route, no name, too slow
            if isinstance(error, (ValueError, TypeError)):
                raise
            return False
        return found.commit_hash is not None  # else it is not the hub that answers

    @contextmanager
    def _one_sentence(self) -> Iterator[None]:
        """Turn the hub's many errors into one sentence that says what was tried and what to do."""
        from huggingface_hub import constants, errors

        at = f" at revision '{self.revision}'" if self.revision else ""
        name, where = f"'{self.name}'", f"the hub ({constants.ENDPOINT})"
        try:
            yield
        except errors.GatedRepoError as error:
            raise UncodeError(f"{name} on {where} is gated: accept its terms there and run `hf auth login`.") from error
        except errors.RevisionNotFoundError as error:
            raise UncodeError(f"{name} on {where} has no revision '{self.revision}': check its name.") from error
        except errors.RepositoryNotFoundError as error:
            raise UncodeError(
                f"{name} is neither a folder here nor a model you can see on {where}: check the spelling, run "
                f"`hf auth login` if it is private, or {self.instead}."
            ) from error
        except errors.LocalEntryNotFoundError as error:
            why = "offline mode is on (HF_HUB_OFFLINE)" if constants.HF_HUB_OFFLINE else f"{where} {self._silence}"
            raise UncodeError(
                f"cannot download {name}{at}: {why}, and the local cache is incomplete; {self.instead}."
            ) from error
        except errors.EntryNotFoundError as error:
            raise UncodeError(f"{name} on {where} has no config.json{at} and is no model: {self.instead}.") from error
        except Exception as error:  # a full disk, a broken connection, a name the hub does not allow
            if isinstance(error, errors.HfHubHTTPError) and error.response.status_code == 401:
                raise UncodeError(f"{where} refused the token for {name}: check it, or run `hf auth login`.") from error
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise UncodeError(
                f"{name}{at} could not be fetched from {where} ({first}): try again, {self.instead}."
            ) from error
