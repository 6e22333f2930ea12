"""Checkpoints from the Hugging Face hub: tokens, revisions, cache and offline mode are those of huggingface_hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..core.errors import UncodeError

WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
"""What a model is made of; pickled weights and code are not even downloaded."""
INSTEAD = "give a local folder, or use the built-in model (--model toy)"

Result = TypeVar("Result")


def looks_like_id(name: str) -> bool:
    """Whether a name can be a hub id: `name` or `owner/name`, in the hub's letters."""
    parts = name.split("/")
    plain = all(part and not part.startswith(("-", ".")) and _is_plain(part) for part in parts)
    return plain and len(parts) <= 2 and not Path(name).is_absolute()


def _is_plain(part: str) -> bool:
    return part.isascii() and part.replace("-", "a").replace("_", "a").replace(".", "a").isalnum()


def config_of(name: str, revision: str | None, token: str | None) -> Path:
    """The model's config.json alone, to learn what it is before gigabytes are fetched."""
    from huggingface_hub import hf_hub_download

    return Path(_ask(name, revision, lambda: hf_hub_download(name, "config.json", revision=revision, token=token)))


def snapshot_of(name: str, revision: str | None, token: str | None) -> Path:
    """The folder of a hub id in the local cache, downloaded with a progress bar where it is not there yet."""
    from huggingface_hub import snapshot_download

    def download() -> str:
        return str(snapshot_download(name, revision=revision, token=token, allow_patterns=WANTED))

    return Path(_ask(name, revision, download))


def cached(name: str) -> list[str]:
    """Revisions of a hub id whose config.json lies in the local cache."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    return sorted(p.parent.name for p in folder.glob("*/config.json"))


def _ask(name: str, revision: str | None, ask: Callable[[], Result]) -> Result:
    """Turn the hub's many errors into one sentence that says what was tried and what to do."""
    from huggingface_hub import constants, errors

    at = f" at revision '{revision}'" if revision else ""
    where = f"the hub ({constants.ENDPOINT})"
    try:
        return ask()
    except errors.GatedRepoError as error:
        raise UncodeError(f"'{name}' on {where} is gated: accept its terms there and run `hf auth login`.") from error
    except errors.RevisionNotFoundError as error:
        raise UncodeError(f"'{name}' on {where} has no revision '{revision}'.") from error
    except errors.EntryNotFoundError as error:
        if not isinstance(error, errors.LocalEntryNotFoundError):
            raise UncodeError(f"'{name}' on {where} has no config.json{at}, so it is not a model uncode can load.") from error
        offline = "offline mode is on (HF_HUB_OFFLINE)" if constants.HF_HUB_OFFLINE else f"{where} cannot be reached"
        raise UncodeError(f"'{name}'{at} is not in the local cache and {offline}: {INSTEAD}.") from error
    except errors.RepositoryNotFoundError as error:
        raise UncodeError(
            f"'{name}' is neither a folder here nor a model you can see on {where}: check the spelling, run "
            f"`hf auth login` if it is private, or {INSTEAD}."
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise UncodeError(f"'{name}'{at} is not in the local cache and offline mode is on (HF_HUB_OFFLINE): {INSTEAD}.") from error
    except Exception as error:  # the http client's own kinds, a full disk, a validation
        first = (str(error).strip().splitlines() or [repr(error)])[0]
        raise UncodeError(f"'{name}'{at} could not be fetched from {where} ({first}): {INSTEAD}.") from error
